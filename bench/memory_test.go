package bench

import (
	"context"
	"testing"

	"github.com/delayq/delayq"
)

func BenchmarkSingle(b *testing.B) {
	ctx := context.Background()
	q, err := delayq.New(ctx, "bench")
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	body := make([]byte, 100)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := q.Push(ctx, body); err != nil {
			b.Fatal(err)
		}
		d, err := q.Receive(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if err := d.Ack(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBatch(b *testing.B) {
	ctx := context.Background()
	q, err := delayq.New(ctx, "bench")
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	ms := make([]delayq.Message, 100)
	for i := range ms {
		ms[i].Body = make([]byte, 100)
	}
	b.ReportAllocs()
	for i := 0; i < b.N; i += len(ms) {
		if _, err := q.PushBatch(ctx, ms); err != nil {
			b.Fatal(err)
		}
		ds, err := q.ReceiveBatch(ctx, len(ms))
		if err != nil {
			b.Fatal(err)
		}
		if err := q.AckBatch(ctx, ds); err != nil {
			b.Fatal(err)
		}
	}
}
