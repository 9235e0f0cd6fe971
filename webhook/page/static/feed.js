// The connection: asks the server for its state again and again, and reports when there is no answer.

const PAUSE_MS = 2000; // between two questions
const ANSWER_MS = 10000;
const RETRY_MS = [1000, 2000, 5000, 10000];

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Return { state, etag, now: the server's time in ms }; `state` is null if it has the ETag `known`. Throws an Error with a message for the reader.
async function ask(known) {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), ANSWER_MS);
  try {
    const headers = known === null ? {} : { "If-None-Match": known };
    const answer = await fetch("api/state", { signal: stop.signal, cache: "no-store", headers });
    const same = answer.status === 304;
    if (!same && !answer.ok) throw new Error((await answer.text()).trim().slice(0, 200) || `HTTP ${answer.status}`);
    return { state: same ? null : await answer.json(), etag: answer.headers.get("ETag"), now: Date.parse(answer.headers.get("Date")) };
  } catch (error) {
    if (stop.signal.aborted) throw new Error(`no answer within ${ANSWER_MS / 1000} s`);
    throw error instanceof TypeError ? new Error("no connection") : error;
  } finally {
    clearTimeout(timer);
  }
}

// Never returns. Calls `update` with each answer, and `lost` with the reason for a missing one. Waits while `gate` is closed.
export async function follow(update, lost, gate) {
  let etag = null;
  let failures = 0;
  for (;;) {
    await gate();
    try {
      const answer = await ask(etag);
      await gate();
      update(answer);
      etag = answer.etag;
      failures = 0;
      await pause(PAUSE_MS);
    } catch (error) {
      lost(error.message);
      await pause(RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]);
    }
  }
}
