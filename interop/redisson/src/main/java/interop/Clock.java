package interop;

import java.time.Instant;

/** The wall clock. */
final class Clock {
    private Clock() {
    }

    /** Nanoseconds since 1970, as fine as the machine gives them: the clock of currentTimeMillis. */
    static long nanos() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000_000L + now.getNano();
    }
}
