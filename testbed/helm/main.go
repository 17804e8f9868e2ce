// Package main renders a chart as Helm does, without the rest of Helm.
//
//	render CHART RELEASE NAMESPACE < values.yaml
//
// The values are checked against the chart's schema and what the templates make of them is printed, each
// document under the name of its template; what is meant for people goes to stderr. Nothing is asked of a
// cluster.
package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(arguments []string, input io.Reader, output, notes io.Writer) error {
	if len(arguments) != 3 {
		return fmt.Errorf("usage: render CHART RELEASE NAMESPACE < values.yaml")
	}
	chart, err := loader.Load(arguments[0])
	if err != nil {
		return err
	}
	if err := chart.Validate(); err != nil {
		return err
	}
	text, err := io.ReadAll(input)
	if err != nil {
		return err
	}
	given, err := chartutil.ReadValues(text)
	if err != nil {
		return err
	}
	release := chartutil.ReleaseOptions{Name: arguments[1], Namespace: arguments[2], Revision: 1, IsInstall: true}
	// This is where the schema is held against the values.
	values, err := chartutil.ToRenderValues(chart, given, release, chartutil.DefaultCapabilities)
	if err != nil {
		return err
	}
	// What a template misses is an error rather than "<no value>" in an object.
	files, err := engine.Engine{Strict: true}.Render(chart, values)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Base(name) == "NOTES.txt" {
			fmt.Fprintln(notes, files[name])
			continue
		}
		if _, err := fmt.Fprintf(output, "---\n# Source: %s\n%s\n", name, files[name]); err != nil {
			return err
		}
	}
	return nil
}
