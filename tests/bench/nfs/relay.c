/*
 * Passes one TCP connection on, and holds the bytes of each direction for so long: relay PORT TO_ADDRESS TO_PORT NANOSECONDS
 *
 * The relay sleeps until bytes arrive. Before bytes are due it wakes as much earlier as a sleep has lately ended too late,
 * and polls for the rest: a virtual machine's timer can be as late as the delay is long.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CHUNKS = 256, CHUNK = 16384, FORGET = 16, SECOND_NS = 1000000000 };

struct chunk {
    uint64_t due;
    ssize_t length;
    char bytes[CHUNK];
};

/* One direction: a ring of what has arrived and was not passed on. */
struct direction {
    int from, to;
    uint32_t first, count;
    struct chunk chunks[CHUNKS];
};

static struct direction there, back;
static uint64_t passed_on, late_sum;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

/* A side has closed: says how late the relay passed bytes on, in nanoseconds, on average. */
static void end(void) {
    printf("%lu\n", (unsigned long)(passed_on ? late_sum / passed_on : 0));
    exit(0);
}

static uint64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * SECOND_NS + (uint64_t)at.tv_nsec;
}

static uint64_t longest(uint64_t one, uint64_t other) {
    return one > other ? one : other;
}

/* Passes on what is due. Returns for how long nothing will be. */
static uint64_t pass_on(struct direction *way) {
    while (way->count) {
        struct chunk *chunk = way->chunks + way->first;
        uint64_t at = now();
        if (chunk->due > at) return chunk->due - at;
        passed_on++, late_sum += at - chunk->due;
        for (ssize_t done = 0, sent; done < chunk->length; done += sent)
            if ((sent = send(way->to, chunk->bytes + done, (size_t)(chunk->length - done), MSG_NOSIGNAL)) < 0) end();
        way->first = (way->first + 1) % CHUNKS;
        way->count--;
    }
    return SECOND_NS;
}

static void take(struct direction *way, uint64_t delay) {
    struct chunk *chunk = way->chunks + (way->first + way->count) % CHUNKS;
    chunk->length = recv(way->from, chunk->bytes, CHUNK, 0);
    if (chunk->length <= 0) end();
    chunk->due = now() + delay;
    way->count++;
}

static int connected(int fd) {
    int yes = 1;
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes)) fail("relay: connection");
    return fd;
}

int main(int argc, char **argv) {
    if (argc != 5) return fputs("usage: relay PORT TO_ADDRESS TO_PORT NANOSECONDS\n", stderr), 2;
    uint64_t delay = strtoull(argv[4], NULL, 10);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[3]))};
    inet_pton(AF_INET, argv[2], &server.sin_addr);
    prctl(PR_SET_TIMERSLACK, 1); /* nanoseconds: Linux may otherwise end a sleep 50 us late */
    int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (void *)&here, sizeof here) || listen(listener, 1)) fail("relay: listen");
    puts("ready"), fflush(stdout);
    int client = connected(accept(listener, NULL, NULL)), to = connected(socket(AF_INET, SOCK_STREAM, 0));
    if (connect(to, (void *)&server, sizeof server)) fail("relay: connect");
    there.from = back.to = client, there.to = back.from = to;
    for (uint64_t late = 0;;) {
        uint64_t first = pass_on(&there), second = pass_on(&back), wait = first < second ? first : second;
        wait = wait > late ? wait - late : 0;
        struct timespec timeout = {.tv_sec = (time_t)(wait / SECOND_NS), .tv_nsec = (long)(wait % SECOND_NS)};
        struct pollfd both[2] = {{.fd = there.count < CHUNKS ? client : -1, .events = POLLIN},
                                 {.fd = back.count < CHUNKS ? to : -1, .events = POLLIN}};
        uint64_t until = now() + wait;
        int arrived = ppoll(both, 2, &timeout, NULL);
        if (arrived < 0) fail("relay: poll");
        if (!arrived && wait) late = longest(late - late / FORGET, now() - until);
        if (both[0].revents) take(&there, delay);
        if (both[1].revents) take(&back, delay);
    }
}
