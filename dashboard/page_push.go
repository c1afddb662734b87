package dashboard

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/delayq/delayq"
)

type pushData struct {
	Form    url.Values
	Problem string
	Denied  string
	OwnIDs  bool
	Headers bool
}

func (v *visit) pushData(form url.Values) pushData {
	return pushData{
		Form: form, Denied: v.denied(Push),
		OwnIDs: v.queue.Supports(delayq.OwnIDs), Headers: v.queue.Supports(delayq.KeepingHeaders),
	}
}

// pushPage shows the form of a push.
func pushPage(v *visit) error {
	return v.show("push", &page{Title: "Push to " + visible(v.name), Tab: "push", Data: v.pushData(nil)})
}

// pushMessage stores a message.
func pushMessage(v *visit) error {
	if err := v.may(Push); err != nil {
		return err
	}
	form, status := v.r.PostForm, http.StatusBadRequest
	body, opts, err := readPush(form)
	if err == nil {
		var id string
		id, err = v.queue.Push(v.ctx, body, opts...)
		var ids []string
		done := 0
		if id != "" {
			ids = []string{id}
		}
		if err == nil {
			done = 1
		}
		v.tell(Push, ids, done, err)
		if err == nil {
			to := v.path()
			if v.queue.Supports(delayq.Getting) {
				to = v.path("messages", segment(id))
			}
			v.goTo(to, nil, "Pushed "+short(id, 100)+".")
			return nil
		}
		if v.queue.Supports(delayq.OwnIDs) && errors.Is(err, delayq.ErrOutcomeUnknown) {
			form.Set("id", id) // to push it again is no second message then
			status = http.StatusBadGateway
		}
	}
	d := v.pushData(form)
	d.Problem = short(err.Error(), 300)
	v.render(v.w, v.r, status, "push", &page{Title: "Push to " + visible(v.name), Tab: "push", Queue: v.name, Data: d})
	return nil
}

// readPush reads a message from a form.
func readPush(form url.Values) (body []byte, opts []delayq.PushOption, err error) {
	if body, err = readBody(form.Get("body"), form.Get("encoding")); err != nil {
		return nil, nil, err
	}
	delay, due, err := readDue(form)
	if err != nil {
		return nil, nil, err
	}
	if due.IsZero() {
		opts = append(opts, delayq.After(delay))
	} else {
		opts = append(opts, delayq.At(due))
	}
	if id := form.Get("id"); id != "" {
		opts = append(opts, delayq.ID(id))
	}
	for line := range strings.Lines(form.Get("headers")) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			continue
		}
		key, value, found := strings.Cut(line, ":")
		if !found {
			return nil, nil, errors.New("headers: lines as \"key: value\"")
		}
		opts = append(opts, delayq.Header(strings.TrimSpace(key), strings.TrimSpace(value)))
	}
	if t := form.Get("type"); t != "" {
		opts = append(opts, delayq.Type(t))
	}
	return body, opts, nil
}

func readBody(text, encoding string) ([]byte, error) {
	switch encoding {
	case "hex":
		body, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			return nil, errors.New("body: pairs of hexadecimal digits")
		}
		return body, nil
	case "base64":
		body, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			return nil, errors.New("body: base64")
		}
		return body, nil
	default: // browsers send the ends of lines as CRLF
		return []byte(strings.ReplaceAll(text, "\r\n", "\n")), nil
	}
}
