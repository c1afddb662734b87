package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var sceneTitle = regexp.MustCompile(`(?m)^\d\. .*?(?:  \(|$)`)

// A scene that is renamed or new needs a new picture: make demo-picture.
func TestPictureShowsTheDemo(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/demo.svg")
	mustDo(t, err)
	if size := len(raw); size > 150_000 {
		t.Errorf("it has %d bytes; want at most 150,000", size)
	}
	text, styles := readPicture(t, string(raw))

	titles := sceneTitle.FindAllString(runOK(t, "demo", "--speed=100").stdout, -1)
	if len(titles) != 6 {
		t.Fatalf("the demo has the scenes %q; want 6", titles)
	}
	for _, title := range titles {
		if title = strings.TrimSuffix(title, "  ("); !strings.Contains(text, title) {
			t.Errorf("it lacks the scene %q", title)
		}
	}
	if !strings.Contains(strings.ReplaceAll(text, "\n", ""), strings.ReplaceAll(promisesKept, `\`, "")) {
		t.Error("it lacks a summary with all promises kept")
	}

	duration := regexp.MustCompile(`animation-duration: (\d+)ms`).FindStringSubmatch(styles)
	if duration == nil {
		t.Fatal("it is not animated")
	}
	if ms, err := strconv.Atoi(duration[1]); err != nil || ms > 15_000 {
		t.Errorf("it takes %v ms (%v); want at most %v", duration[1], err, 15*time.Second)
	}
}

// readPicture returns the text of an SVG picture, a line for each element, and its styles. It
// rejects what a page with a strict policy does not show: scripts and what is fetched.
func readPicture(t *testing.T, picture string) (text, styles string) {
	t.Helper()
	var in string
	d := xml.NewDecoder(strings.NewReader(picture))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		mustDo(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			in = token.Name.Local
			rejectActive(t, token)
		case xml.CharData:
			switch in {
			case "text":
				text += string(token) + "\n"
			case "style":
				styles += string(token)
			}
		case xml.EndElement:
			in = ""
		}
	}
	if strings.Contains(styles, "url(") || strings.Contains(styles, "@import") {
		t.Error("its styles fetch something")
	}
	return text, styles
}

func rejectActive(t *testing.T, element xml.StartElement) {
	t.Helper()
	switch element.Name.Local {
	case "script", "foreignObject", "image":
		t.Errorf("it has an element %s", element.Name.Local)
	}
	for _, a := range element.Attr {
		if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" && !strings.HasPrefix(a.Value, "#") {
			t.Errorf("%s has %s=%q", element.Name.Local, a.Name.Local, a.Value)
		}
	}
}
