package delayq_test

import (
	"context"
	"fmt"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/delayq/delayq"
)

// Metrics go where the program's provider takes them: here to a reader that it asks itself.
func ExampleWithMeterProvider() {
	ctx := context.Background()
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))

	q, err := delayq.New(ctx, "orders", delayq.InMemory(), delayq.WithMeterProvider(provider))
	if err != nil {
		panic(err)
	}
	defer q.Close()
	for range 3 {
		if _, err := q.Push(ctx, nil); err != nil {
			panic(err)
		}
	}

	var collected metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &collected); err != nil {
		panic(err)
	}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "messaging.client.sent.messages" {
			fmt.Println(m.Name, sum.DataPoints[0].Value)
		}
	}
	// Output: messaging.client.sent.messages 3
}
