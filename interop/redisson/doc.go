// Package interop drives real Redisson, in a Java process, from Go tests and benchmarks.
//
//	jvm := interop.Start(t, "3.52.0", server.URL())
//	orders := jvm.Queue("orders", interop.WithCodec(interop.String))
//	err := orders.Offer(ctx, "order 17", time.Second)
//
// It needs a JDK and Maven, which builds the program under src once for each release of Redisson
// and fetches that release when it is first asked for. Without them a test is skipped and says how
// to get them; DELAYQ_REQUIRE=java makes it fail instead.
//
// A call that waits ends with its context. What it asked of Java goes on: a take whose context has
// ended may still take a value, which is lost then, as it is in Redisson.
package interop
