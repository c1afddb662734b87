package interop;

/** A queue: its name, its codec, and the prefix of the client's NameMapper. */
final class QueueName {
    final String name;
    final String codec;
    final String prefix;

    QueueName(String name, String codec, String prefix) {
        this.name = name;
        this.codec = codec;
        this.prefix = prefix;
    }

    QueueName withSuffix(String suffix) {
        return new QueueName(name + suffix, codec, prefix);
    }

    /** Equal for equal queues. */
    String key() {
        return prefix + '\n' + codec + '\n' + name;
    }
}
