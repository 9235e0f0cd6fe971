/*
 * Sends NFS requests on one connection, several at a time, and takes the time of each.
 *
 * client.py has made the session and the requests. This loop only writes the numbers that differ from request to
 * request: the RPC's xid, the session's slot and its sequence number, and the offset in the file.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { SLOTS = 64, LARGEST = 16384, RECEIVED = 1 << 18, SECOND_NS = 1000000000, BLOCK = 4096 };
enum { XID = 4, ACCEPT_STAT = 24, NFS_STATUS = 28 }; /* where they stand in a record, after its mark of 4 bytes */

/* One request; the places of numbers in it are -1 where it has none. */
struct request {
    const uint8_t *bytes;
    uint32_t length;
    int32_t slot_at, sequence_at, offset_at;
};

struct slot {
    uint32_t step; /* which of the requests is under way */
    uint64_t sent;
};

static uint64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * SECOND_NS + (uint64_t)at.tv_nsec;
}

static uint32_t number_at(const uint8_t *bytes) {
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return ntohl(value);
}

static void put_number(uint8_t *bytes, uint32_t value) {
    value = htonl(value);
    memcpy(bytes, &value, sizeof value);
}

static uint64_t random_offset(uint64_t *state, uint32_t blocks) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17; /* xorshift */
    return *state % blocks * BLOCK;
}

/* Sends the request of a slot. The xid is the number of the slot. Returns 0, or -errno. */
static int64_t send_request(int fd, const struct request *request, uint32_t slot, uint32_t *sequence, uint64_t offset) {
    uint8_t bytes[LARGEST];
    memcpy(bytes, request->bytes, request->length);
    put_number(bytes + XID, slot);
    if (request->slot_at >= 0) put_number(bytes + request->slot_at, slot);
    if (request->sequence_at >= 0) put_number(bytes + request->sequence_at, ++*sequence);
    if (request->offset_at >= 0) {
        offset = htobe64(offset);
        memcpy(bytes + request->offset_at, &offset, sizeof offset);
    }
    for (uint32_t done = 0; done < request->length;) {
        ssize_t sent = send(fd, bytes + done, request->length - done, MSG_NOSIGNAL);
        if (sent < 0) return -errno;
        done += (uint32_t)sent;
    }
    return 0;
}

/*
 * Keeps `depth` requests under way for so many nanoseconds, and waits for the last of them. Each slot goes through the
 * steps in turn; the time of the last step is taken. Returns how many times were taken; -errno; or -1000000 and below
 * for a reply with an error.
 */
int64_t exchange(int fd, const struct request *steps, uint32_t count, uint32_t depth, uint32_t blocks, uint64_t duration,
                 uint32_t *sequences, uint32_t *times, uint32_t room) {
    static uint8_t received[RECEIVED];
    struct slot slots[SLOTS] = {0};
    uint64_t begun = now(), state = begun | 1;
    uint32_t under_way = 0, have = 0, taken = 0;
    if (depth > SLOTS) return -EINVAL;
    for (uint32_t each = 0; each < depth; each++, under_way++) {
        slots[each].sent = now();
        int64_t failed = send_request(fd, steps, each, sequences + each, random_offset(&state, blocks));
        if (failed) return failed;
    }
    while (under_way) {
        ssize_t more = recv(fd, received + have, RECEIVED - have, 0);
        if (more <= 0) return more ? -errno : -ECONNRESET;
        uint32_t from = 0;
        for (have += (uint32_t)more; have - from >= 4;) {
            const uint8_t *record = received + from;
            uint32_t length = number_at(record); /* the highest bit: the last fragment of its record */
            if (!(length >> 31) || (length & 0x7fffffff) > RECEIVED - 4) return -EPROTO;
            length &= 0x7fffffff;
            if (have - from < length + 4) break;
            from += length + 4;
            uint32_t which = number_at(record + XID);
            if (which >= depth || number_at(record + ACCEPT_STAT)) return -EPROTO;
            if (length > NFS_STATUS && number_at(record + NFS_STATUS)) return -1000000 - number_at(record + NFS_STATUS);
            struct slot *slot = slots + which;
            uint64_t at = now();
            if (slot->step == count - 1 && taken < room) times[taken++] = (uint32_t)(at - slot->sent);
            slot->step = (slot->step + 1) % count;
            if (at - begun >= duration) {
                under_way--;
                continue;
            }
            slot->sent = at;
            int64_t failed =
                send_request(fd, steps + slot->step, which, sequences + which, random_offset(&state, blocks));
            if (failed) return failed;
        }
        memmove(received, received + from, have -= from);
    }
    return taken;
}
