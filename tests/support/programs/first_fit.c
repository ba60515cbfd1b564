/* First fit as docs/stages/first_fit.py, in C: a program that reads the lives and the rows as JSON, and writes the starts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *text;

/* The numbers after a name; how many there are. */
static size_t numbers(const char *name, long *found) {
    char *at = strstr(text, name) + strlen(name);
    size_t count = 0;
    for (at += strspn(at, "\":["); *at != ']' && *at != '}'; at += strspn(at, ",")) found[count++] = strtol(at, &at, 10);
    return count;
}

int main(void) {
    size_t length = 0, room = 1 << 16;
    for (text = malloc(room); !feof(stdin);) {
        length += fread(text + length, 1, room - 1 - length, stdin);
        if (length == room - 1) text = realloc(text, room *= 2);
    }
    text[length] = 0;
    long *first = malloc(length * sizeof(long)), *last = malloc(length * sizeof(long)), *rows = malloc(length * sizeof(long));
    long *start = calloc(length, sizeof(long)), *done = calloc(length, sizeof(long)), most;
    size_t count = numbers("\"first\"", first);
    numbers("\"last\"", last);
    numbers("\"rows\":[", rows);
    most = strtol(strstr(strstr(text, "}"), "\"rows\"") + 7, NULL, 10);
    for (size_t turn = 0; turn < count; turn++) {
        size_t b = count;
        for (size_t i = 0; i < count; i++)
            if (!done[i] && (b == count || first[i] < first[b])) b = i;
        for (int moved = 1; moved;) {
            moved = 0;
            for (size_t i = 0; i < count; i++)
                if (done[i] && first[i] <= last[b] && first[b] <= last[i] && start[i] < start[b] + rows[b] && start[b] < start[i] + rows[i]) {
                    start[b] = start[i] + rows[i];
                    moved = 1;
                }
        }
        if (start[b] + rows[b] > most) return puts("{\"version\": 1, \"TooLarge\": \"no rows are free\"}") < 0;
        done[b] = 1;
    }
    printf("{\"version\": 1, \"result\": [");
    for (size_t i = 0; i < count; i++) printf("%s%ld", i ? ", " : "", start[i]);
    puts("]}");
    return 0;
}
