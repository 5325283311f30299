package judge_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The expressions of the readings are compiled when they are first asked, so each is compiled once here. What is made of a
// task's words is asked once, and is for package regexp.
func TestExpressionsCompile(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		known := constants(file)
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || !isLazy(call.Fun) {
				return true
			}
			n++
			expr, err := literal(call.Args[0], known)
			if err == nil {
				_, err = regexp.Compile(expr)
			}
			if err != nil {
				t.Errorf("%s: %v", files.Position(call.Pos()), err)
			}
			return true
		})
	}
	if n < 500 {
		t.Errorf("only %d expressions were found", n)
	}
}

// isLazy reports whether a call is one of lazydfa.MustCompile.
func isLazy(f ast.Expr) bool {
	s, ok := f.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "MustCompile" {
		return false
	}
	id, ok := s.X.(*ast.Ident)
	return ok && id.Name == "lazydfa"
}

// constants gives the texts of a file's constants, by name.
func constants(file *ast.File) map[string]string {
	known := map[string]string{}
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.CONST {
			continue
		}
		for _, spec := range decl.Specs {
			v := spec.(*ast.ValueSpec)
			for i, value := range v.Values {
				if text, err := literal(value, known); err == nil {
					known[v.Names[i].Name] = text
				}
			}
		}
	}
	return known
}

// literal gives the text of string literals and constants that are joined.
func literal(x ast.Expr, known map[string]string) (string, error) {
	switch x := x.(type) {
	case *ast.BasicLit:
		return strconv.Unquote(x.Value)
	case *ast.Ident:
		if text, ok := known[x.Name]; ok {
			return text, nil
		}
	case *ast.BinaryExpr:
		a, err := literal(x.X, known)
		if err != nil {
			return "", err
		}
		b, err := literal(x.Y, known)
		return a + b, err
	}
	return "", fmt.Errorf("%T is no constant text", x)
}
