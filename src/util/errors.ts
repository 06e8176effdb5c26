/**
 * Defines the errors that Refit shows to people. Each error has a code, an exit code and advice.
 * docs/reference/errors.md is generated from this file.
 */
import { HOMEPAGE } from './home.ts';
import { printable } from './printable.ts';

/** The exit codes of every `refit` process. docs/reference/cli.md documents them. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  unreachable: 3,
  denied: 4,
  interrupted: 130,
} as const;

/**
 * The exit code of the process and the advice at the end of the message, for each code.
 * tools/reference/errors.ts explains the codes.
 */
export const ERRORS = {
  REFIT_USAGE: { exit: EXIT.usage, hint: 'run the same command with `--help`' },
  REFIT_KUBECONFIG: {
    exit: EXIT.usage,
    hint: 'pass --kubeconfig, or set KUBECONFIG to a file with a current context',
  },
  REFIT_FILE: { exit: EXIT.usage, hint: 'check the path and the content of the file' },
  REFIT_UNREACHABLE: {
    exit: EXIT.unreachable,
    hint: 'check that the API server runs and that its address is correct',
  },
  REFIT_BAD_ANSWER: {
    exit: EXIT.unreachable,
    hint: 'the fault is at that address: check that it is the API server, and not a proxy or a login page in front of it',
  },
  REFIT_TLS: {
    exit: EXIT.unreachable,
    hint: 'renew the certificate, correct its authority in the kubeconfig, or correct the clock of this machine',
  },
  REFIT_UNAUTHORIZED: { exit: EXIT.denied, hint: 'renew the credentials in the kubeconfig' },
  REFIT_FORBIDDEN: {
    exit: EXIT.denied,
    hint: 'grant the missing permission: in deploy/rbac.yaml, the role refit-viewer allows commands that read, and refit-operator also allows commands that change plans; `refit install controller` prints both',
  },
  REFIT_SSH: {
    exit: EXIT.unreachable,
    hint: 'run `ssh` by hand with the same user, key and known hosts',
  },
  REFIT_REFUSED: {
    exit: EXIT.failed,
    hint: 'correct what the message names, then run the same command again',
  },
  REFIT_CONTROL: { exit: EXIT.failed, hint: 'run `refit status`' },
  REFIT_NO_CRD: {
    exit: EXIT.failed,
    hint: 'the cluster lacks definitions: `refit install controller` prints them; for other dialects write cattle or capi',
  },
  REFIT_PLAN_FAILED: { exit: EXIT.failed, hint: 'run `refit status`' },
  REFIT_TIMEOUT: {
    exit: EXIT.failed,
    hint: 'the plan goes on: run `refit why`, or wait longer with --timeout',
  },
  REFIT_AGENT: { exit: EXIT.failed, hint: 'read the log of the agent' },
  REFIT_INSTALL: { exit: EXIT.failed, hint: 'correct what the message names, then install again' },
  REFIT_TESTENV: {
    exit: EXIT.failed,
    hint: 'check that Go is installed and a network is available: both are needed to build the control plane',
  },
  REFIT_INTERNAL: {
    exit: EXIT.failed,
    hint: `this is a bug in Refit: please report it with the log${HOMEPAGE && ` at ${HOMEPAGE}`}`,
  },
} as const satisfies Readonly<Record<string, { exit: number; hint: string }>>;

export type ErrorCode = keyof typeof ERRORS;

export interface RefitErrorOptions extends ErrorOptions {
  /** What the user can do. The default is the hint of the code. */
  readonly hint?: string;
  /** All problems of the subject of the message, such as each wrong field of a file. */
  readonly problems?: readonly string[];
}

/** An error that Refit shows to people. */
export class RefitError extends Error {
  readonly code: ErrorCode;
  readonly #hint: string;
  readonly #subject: string;
  readonly #problems: readonly string[];

  /**
   * Creates an error. If there are `problems`, `subject` names the thing that has the problems, and the message
   * contains them.
   */
  constructor(code: ErrorCode, subject: string, options: RefitErrorOptions = {}) {
    const { hint, problems = [], ...rest } = options;
    const parts = [subject, problems.join('; ')].filter((part) => part !== '');
    super(parts.join(': '), rest);
    this.name = 'RefitError';
    this.code = code;
    this.#hint = hint ?? ERRORS[code].hint;
    this.#subject = subject;
    this.#problems = problems;
  }

  get exitCode(): number {
    return ERRORS[this.code].exit;
  }

  /** All problems of the subject, at least one. */
  get problems(): readonly string[] {
    return this.#problems.length > 0 ? this.#problems : [this.message];
  }

  /**
   * One line for a log: the code, what happened, and what to do. It replaces control characters in the text of servers
   * and nodes.
   */
  get line(): string {
    return oneLine(`${this.code}: ${this.message.trim()} (${this.#hint})`);
  }

  /**
   * The text for the user of a command. It is like `line`, but if there are several problems, each
   * has its own line.
   */
  get text(): string {
    const { length } = this.#problems;
    if (length < 2) return this.line;
    const subject = this.#subject === '' ? '' : `${this.#subject}: `;
    const head = oneLine(`${this.code}: ${subject}${length} errors (${this.#hint})`);
    return [head, ...this.#problems.map((problem) => `  ${oneLine(problem.trim())}`)].join('\n');
  }
}

function oneLine(text: string): string {
  return printable(text.replaceAll(/\s+/g, ' '));
}

/**
 * Returns a function that throws a RefitError. It takes one sentence, or a list of problems.
 * `prefix` ends with a colon and a blank.
 */
export const failing =
  (code: ErrorCode, prefix = '', options: RefitErrorOptions = {}) =>
  (why: string | readonly string[]): never => {
    if (typeof why === 'string') throw new RefitError(code, `${prefix}${why}`, options);
    throw new RefitError(code, prefix.replace(/: $/, ''), { ...options, problems: why });
  };

/**
 * Returns the message of any thrown value, with the messages of its causes. A cause that the message
 * already contains is not repeated.
 */
export function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const own = ownMessageOf(thrown);
  if (thrown.cause === undefined) return own;
  const why = messageOf(thrown.cause);
  return own.includes(why) ? own : `${own}: ${why}`;
}

/**
 * Returns the message of the error alone. If all addresses of a host have failed, Node.js gives no message, so the
 * messages of the single failures are joined.
 */
function ownMessageOf(error: Error): string {
  if (error.message !== '' || !(error instanceof AggregateError)) return error.message;
  return error.errors.map(messageOf).join(', ');
}

/**
 * Returns a usage error with the first sentence of the message, because the other sentences explain how Node.js parses
 * arguments. A full stop in a quoted argument does not end the sentence.
 */
export function usageError(error: unknown): RefitError {
  return new RefitError(
    'REFIT_USAGE',
    messageOf(error).split(/(?<=')\. (?=[A-Z])|\.?\n/)[0] ?? '',
    { cause: error },
  );
}

/**
 * Returns a function that waits for `work`. It resolves with undefined if `work` rejects with an
 * expected error. It rejects with any other error.
 */
export const unlessError =
  (isExpected: (error: unknown) => boolean) =>
  async <T>(work: Promise<T>): Promise<T | undefined> =>
    await work.catch((error: unknown) => {
      if (isExpected(error)) return undefined;
      throw error;
    });

/**
 * Returns the result of `work`, or undefined if `work` throws. Use it only if all possible errors have the same
 * meaning.
 */
export function ifPossible<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
