// Package browsertest walks the dashboard in a real browser: on several stores, in light and dark,
// on small and large screens. It is a module of its own, so that users do not download the driver
// of the browser.
package browsertest
