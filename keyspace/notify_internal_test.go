package keyspace

import "testing"

func TestMerged(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		flags, want string
		lacking     bool
	}{
		{"", "Ex", true},
		{"Ex", "Ex", false},
		{"xE", "xE", false},
		{"E", "Ex", true},
		{"x", "xE", true},
		{"K", "KEx", true},
		{"Kx", "KxE", true},
		{"A", "AE", true},
		{"AE", "AE", false},
		{"AK", "AKE", true},
		{"AKE", "AKE", false},
		{"Eg$", "Eg$x", true},
		{"KEelh", "KEelhx", true}, // e is for evictions
		{"mnK", "mnKEx", true},
	} {
		if got, lacking := merged(tt.flags); got != tt.want || lacking != tt.lacking {
			t.Errorf("merged(%q) = %q, %v; want %q, %v", tt.flags, got, lacking, tt.want, tt.lacking)
		}
	}
}
