// The connection: asks the server for changes again and again, and reports when there is no answer.

const PAUSE_MS = 1000; // between two updates, at least
const ANSWER_MS = 25000; // the server answers within 10 s, even without changes
const RETRY_MS = [1000, 2000, 5000, 10000];

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Return one answer. Throws an Error with a message for the reader.
async function ask(cursor) {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), ANSWER_MS);
  try {
    const query = cursor === null ? "" : `?after=${encodeURIComponent(cursor)}`;
    const answer = await fetch(`api/state${query}`, { signal: stop.signal, cache: "no-store" });
    if (!answer.ok) throw new Error((await answer.text()).trim().slice(0, 200) || `HTTP ${answer.status}`);
    return await answer.json();
  } catch (error) {
    if (stop.signal.aborted) throw new Error(`no answer within ${ANSWER_MS / 1000} s`);
    throw error instanceof TypeError ? new Error("no connection") : error;
  } finally {
    clearTimeout(timer);
  }
}

// Never returns. Calls `update` with each answer, and `lost` with the reason for a missing one. Waits while `gate` is closed.
export async function follow(update, lost, gate) {
  let cursor = null;
  let failures = 0;
  for (;;) {
    const asked = performance.now();
    try {
      const answer = await ask(cursor);
      await gate();
      update(answer);
      cursor = answer.cursor;
      failures = 0;
      await pause(Math.max(0, PAUSE_MS - (performance.now() - asked)));
    } catch (error) {
      lost(error.message);
      await pause(RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]);
    }
  }
}
