// Package sqlqueue is what the backends on SQL databases share beside their handles: statements in
// files, and how headers and cursors are written.
package sqlqueue
