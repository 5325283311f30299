package swerex

import (
	"encoding/json"
	"fmt"
)

// The shapes below are SWE-ReX's, field for field (its runtime's abstract models).

type createSession struct {
	StartupSource  []string `json:"startup_source"`
	Session        string   `json:"session"`
	SessionType    string   `json:"session_type"`
	StartupTimeout float64  `json:"startup_timeout"`
}

type action struct {
	Command              string   `json:"command"`
	Session              string   `json:"session"`
	Timeout              *float64 `json:"timeout"`
	IsInteractiveCommand bool     `json:"is_interactive_command"`
	IsInteractiveQuit    bool     `json:"is_interactive_quit"`
	Check                string   `json:"check"`
	ErrorMsg             string   `json:"error_msg"`
	Expect               []string `json:"expect"`
	ActionType           string   `json:"action_type"`
	NRetry               int      `json:"n_retry"`
}

type observation struct {
	Output        string `json:"output"`
	ExitCode      *int   `json:"exit_code"`
	FailureReason string `json:"failure_reason"`
	ExpectString  string `json:"expect_string"`
	SessionType   string `json:"session_type"`
}

type closeSession struct {
	Session     string `json:"session"`
	SessionType string `json:"session_type"`
}

type command struct {
	Command            argv              `json:"command"`
	Timeout            *float64          `json:"timeout"`
	Shell              bool              `json:"shell"`
	Check              bool              `json:"check"`
	ErrorMsg           string            `json:"error_msg"`
	Env                map[string]string `json:"env"`
	Cwd                *string           `json:"cwd"`
	MergeOutputStreams bool              `json:"merge_output_streams"`
}

type commandResponse struct {
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
	ExitCode *int   `json:"exit_code"`
}

type readFile struct {
	Path     string  `json:"path"`
	Encoding *string `json:"encoding"`
	Errors   *string `json:"errors"`
}

type writeFile struct {
	Content string `json:"content"`
	Path    string `json:"path"`
}

// argv is a string or a list of strings.
type argv struct {
	line  string
	words []string
}

// UnmarshalJSON takes either form.
func (a *argv) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &a.line) == nil {
		return nil
	}
	if err := json.Unmarshal(data, &a.words); err != nil {
		return fmt.Errorf("command must be a string or a list of strings")
	}
	return nil
}

// exception is an error that the client raises again on its side, by its class.
type exception struct {
	class   string
	message string
	extra   map[string]any
}

func (e *exception) Error() string { return e.message }

func raise(class, format string, args ...any) *exception {
	return &exception{class: class, message: fmt.Sprintf(format, args...), extra: map[string]any{}}
}

// Classes that SWE-ReX's client knows.
const (
	classExit      = "swerex.exceptions.NonZeroExitCodeError"
	classTimeout   = "swerex.exceptions.CommandTimeoutError"
	classExists    = "swerex.exceptions.SessionExistsError"
	classNoSession = "swerex.exceptions.SessionDoesNotExistError"
	classNoFile    = "builtins.FileNotFoundError"
	classValue     = "builtins.ValueError"
	classOther     = "swerex.exceptions.SwerexException"
)
