/** Owns the registry of errors that Refit shows to people: one code, one meaning, one exit code; see docs/reference/errors.md. */

/** Exit codes of every `refit` process, as documented in docs/reference/cli.md. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  unreachable: 3,
  denied: 4,
  interrupted: 130,
} as const;

/** Every code with the process's exit code and the advice that ends its message. */
export const ERRORS = {
  REFIT_USAGE: { exit: EXIT.usage, hint: 'see `refit --help`' },
  REFIT_KUBECONFIG: { exit: EXIT.usage, hint: 'pass --kubeconfig or set KUBECONFIG to a file with a current context' },
  REFIT_FILE: { exit: EXIT.usage, hint: 'check the path and what the file holds' },
  REFIT_UNREACHABLE: { exit: EXIT.unreachable, hint: 'check that the API server runs and that its address is right' },
  REFIT_TLS: {
    exit: EXIT.unreachable,
    hint: 'renew the certificate, or correct the certificate authority in the kubeconfig',
  },
  REFIT_UNAUTHORIZED: { exit: EXIT.denied, hint: 'the credentials are not accepted: renew them' },
  REFIT_FORBIDDEN: { exit: EXIT.denied, hint: 'the user lacks a right: see deploy/rbac.yaml for the documented roles' },
  REFIT_NO_CRD: { exit: EXIT.failed, hint: 'apply deploy/crds first' },
  REFIT_PLAN_FAILED: { exit: EXIT.failed, hint: 'see `refit status`' },
  REFIT_AGENT: { exit: EXIT.failed, hint: 'see the log of the agent' },
  REFIT_TESTENV: { exit: EXIT.failed, hint: 'see docs/testenv.md' },
  REFIT_INTERNAL: { exit: EXIT.failed, hint: 'this is a fault of Refit: please report it with the log' },
} as const satisfies Readonly<Record<string, { exit: number; hint: string }>>;

export type ErrorCode = keyof typeof ERRORS;

/** An error with a code from the registry; `cause` is always kept. */
export class RefitError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'RefitError';
    this.code = code;
  }

  get exitCode(): number {
    return ERRORS[this.code].exit;
  }

  /** The one line a person gets: code, what happened, what to do. */
  get line(): string {
    return `${this.code}: ${this.message} (${ERRORS[this.code].hint})`;
  }
}

/** Says that no retry can help: the work queue drops the key instead of trying again. */
export class TerminalError extends Error {
  override readonly name = 'TerminalError';
}

/** The message of anything that was thrown, with the messages of its causes. */
export function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  return thrown.cause === undefined ? thrown.message : `${thrown.message}: ${messageOf(thrown.cause)}`;
}
