/** Owns the registry of errors that Refit shows to people: one code, one meaning, one exit code; see docs/reference/errors.md. */

import { printable } from './printable.ts';

/** Exit codes of every `refit` process, as documented in docs/reference/cli.md. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  unreachable: 3,
  denied: 4,
  interrupted: 130,
} as const;

/** Every code with its meaning, the process's exit code, and the advice that ends its message. */
export const ERRORS = {
  REFIT_USAGE: {
    meaning: 'The command line does not parse.',
    exit: EXIT.usage,
    hint: 'see the same command with `--help`',
  },
  REFIT_KUBECONFIG: {
    meaning: 'The kubeconfig cannot be read, or names no usable cluster.',
    exit: EXIT.usage,
    hint: 'pass --kubeconfig or set KUBECONFIG to a file with a current context',
  },
  REFIT_FILE: {
    meaning: 'A file cannot be read, or does not hold what was asked for.',
    exit: EXIT.usage,
    hint: 'check the path and what the file holds',
  },
  REFIT_UNREACHABLE: {
    meaning: 'No answer from the API server.',
    exit: EXIT.unreachable,
    hint: 'check that the API server runs and that its address is right',
  },
  REFIT_TLS: {
    meaning: 'The API server or this side does not trust the certificate of the other, or it has expired.',
    exit: EXIT.unreachable,
    hint: 'renew the certificate, or correct the certificate authority in the kubeconfig',
  },
  REFIT_UNAUTHORIZED: {
    meaning: 'The API server does not know who asks.',
    exit: EXIT.denied,
    hint: 'the credentials are not accepted: renew them',
  },
  REFIT_FORBIDDEN: {
    meaning: 'The API server knows who asks and says no.',
    exit: EXIT.denied,
    hint: 'the user lacks a right: see deploy/rbac.yaml for the documented roles',
  },
  REFIT_SSH: {
    meaning: 'A host cannot be reached over SSH, is not who it was, or fails at a step.',
    exit: EXIT.unreachable,
    hint: 'try `ssh` by hand with the same user, key and known hosts; see docs/guides/kubeadm.md',
  },
  REFIT_REFUSED: {
    meaning: 'The cluster cannot be upgraded as asked for: a rule stands against it.',
    exit: EXIT.failed,
    hint: 'see docs/guides/kubeadm.md for the rules',
  },
  REFIT_CONTROL: {
    meaning: 'The command makes no sense for this plan, or for this node of it.',
    exit: EXIT.failed,
    hint: 'see `refit status`',
  },
  REFIT_NO_CRD: {
    meaning: 'The API server does not know the kinds that Refit works with.',
    exit: EXIT.failed,
    hint: 'apply deploy/crds first',
  },
  REFIT_PLAN_FAILED: { meaning: 'The plan ended without success.', exit: EXIT.failed, hint: 'see `refit status`' },
  REFIT_AGENT: {
    meaning: 'The agent cannot work on this host.',
    exit: EXIT.failed,
    hint: 'see the log of the agent',
  },
  REFIT_TESTENV: {
    meaning: 'The real control plane for tests cannot be built or started.',
    exit: EXIT.failed,
    hint: 'see docs/internals/testenv.md',
  },
  REFIT_INTERNAL: {
    meaning: 'Something happened that nobody thought of.',
    exit: EXIT.failed,
    hint: 'this is a fault of Refit: please report it with the log',
  },
} as const satisfies Readonly<Record<string, { meaning: string; exit: number; hint: string }>>;

export type ErrorCode = keyof typeof ERRORS;

interface RefitErrorOptions extends ErrorOptions {
  /** What to do, where that is not what the code advises. */
  readonly hint?: string;
}

/** An error with a code from the registry; `cause` is always kept. */
export class RefitError extends Error {
  readonly code: ErrorCode;
  readonly #hint: string;

  constructor(code: ErrorCode, message: string, options: RefitErrorOptions = {}) {
    const { hint, ...rest } = options;
    super(message, rest);
    this.name = 'RefitError';
    this.code = code;
    this.#hint = hint ?? ERRORS[code].hint;
  }

  get exitCode(): number {
    return ERRORS[this.code].exit;
  }

  /** The one line a person gets: code, what happened, what to do. Servers and nodes may have brought line breaks and worse. */
  get line(): string {
    return `${this.code}: ${printable(this.message.trim().replaceAll(/\s+/g, ' '))} (${this.#hint})`;
  }
}

/** Says that no retry can help: the work queue drops the key instead of trying again. */
export class TerminalError extends Error {
  override readonly name = 'TerminalError';
}

/** The message of anything that was thrown, with the messages of its causes. */
export function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  return thrown.cause === undefined ? ownMessageOf(thrown) : `${ownMessageOf(thrown)}: ${messageOf(thrown.cause)}`;
}

/** Node says nothing of its own where it tried several addresses of one host, and all of them failed. */
function ownMessageOf(error: Error): string {
  if (error.message !== '' || !(error instanceof AggregateError)) return error.message;
  return error.errors.map(messageOf).join(', ');
}
