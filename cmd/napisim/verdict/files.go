package verdict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"napisim/reports/text"
)

// Files is a report in the formats that are stored.
type Files struct{ Text, JSON []byte }

// fileWidth is how wide a text is that no terminal limits.
const fileWidth = 100

// Files writes the report in both formats.
func (r *Report) Files() (Files, error) {
	var plain, data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := errors.Join(r.WriteText(&plain, text.Options{Width: fileWidth}), encoder.Encode(r))
	return Files{plain.Bytes(), data.Bytes()}, err
}

// WriteMarkdown writes the verdict and the table for a document.
func (r *Report) WriteMarkdown(w io.Writer) error {
	for _, sentence := range r.Verdict {
		if _, err := fmt.Fprintf(w, "%s\n\n", sentence); err != nil {
			return err
		}
	}
	if r.Differs {
		if err := r.Table().Write(w, text.FormatMarkdown, text.Options{}); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	_, err := fmt.Fprintln(w, r.Ran())
	return err
}

// Tidy makes lists of what is nil, so that JSON has lists, too.
func (r *Report) Tidy() {
	list(&r.LeftOut)
	list(&r.Players)
	list(&r.Interactions)
	list(&r.Waterfall)
	list(&r.Notes)
	list(&r.Warnings)
	list(&r.Verdict)
	for i := range r.Players {
		list(&r.Players[i].Members)
		list(&r.Players[i].Functions)
	}
}

func list[T any](of *[]T) {
	if *of == nil {
		*of = []T{}
	}
}
