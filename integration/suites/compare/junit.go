package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// testCase is JUnit's element of one test.
type testCase struct {
	Class   string    `xml:"classname,attr"`
	Name    string    `xml:"name,attr"`
	Failure *struct{} `xml:"failure"`
	Error   *struct{} `xml:"error"`
	Skipped *struct{} `xml:"skipped"`
}

func (c testCase) status() status {
	switch {
	case c.Failure != nil || c.Error != nil:
		return failed
	case c.Skipped != nil:
		return skipped
	}
	return passed
}

// readJUnit reads every report in JUnit's format, *.xml. Tests of one name are
// numbered.
func readJUnit(dir string) (results, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.xml"))
	if err != nil {
		return nil, err
	}
	found := results{}
	for _, file := range files {
		if err := found.addJUnit(file); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
	}
	return found, nil
}

func (r results) addJUnit(file string) error {
	report, err := os.Open(file)
	if err != nil {
		return err
	}
	defer report.Close()
	decoder := xml.NewDecoder(report)
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "testcase" {
			continue
		}
		var c testCase
		if err := decoder.DecodeElement(&c, &start); err != nil {
			return err
		}
		r.add(c)
	}
}

func (r results) add(c testCase) {
	name := c.Class + " " + c.Name
	unique := name
	for n := 2; ; n++ {
		if _, taken := r[unique]; !taken {
			break
		}
		unique = fmt.Sprintf("%s #%d", name, n)
	}
	r[unique] = outcome{status: c.status()}
}
