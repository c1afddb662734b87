// Package dashboard shows queues in a browser: how many messages are scheduled, ready, in flight
// and dead, when what is scheduled falls due, and each message. It pushes, cancels, reschedules,
// redrives, deletes, pauses and purges.
//
// [New] returns an [http.Handler] to mount in your own server under any prefix:
//
//	pages, err := dashboard.New(dashboard.Backend(b, nil), dashboard.Authorize(allow))
//	http.Handle("/delayq/", http.StripPrefix("/delayq", pages))
//
// Without [Authorize] the handler serves only requests from the machine itself and changes nothing.
// The pages are plain HTML with one small script. They load nothing from other hosts.
//
// An open page costs one Stats of each queue that it shows every two seconds, however many browsers
// show it.
package dashboard
