package interop;

/** Which queue is meant: its name, its codec, and what the client's NameMapper puts before the name. */
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
