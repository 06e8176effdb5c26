/** The errors that Refit shows to people: one code, one meaning, one exit code. Generates docs/reference/errors.md. */
import { printable } from './printable.ts';

/** Exit codes of every `refit` process, as documented in docs/reference/cli.md. */
export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3, denied: 4, interrupted: 130 } as const;

/** Every code with its meaning, the process's exit code, and the advice that ends its message. */
export const ERRORS = {
  REFIT_USAGE: {
    meaning: 'The command line is not valid.',
    exit: EXIT.usage,
    hint: 'run the same command with `--help`',
  },
  REFIT_KUBECONFIG: {
    meaning: 'The kubeconfig cannot be read, or has no usable cluster.',
    exit: EXIT.usage,
    hint: 'pass --kubeconfig, or set KUBECONFIG to a file with a current context',
  },
  REFIT_FILE: {
    meaning: 'A file cannot be read, or does not contain what Refit needs.',
    exit: EXIT.usage,
    hint: 'check the path and the content of the file',
  },
  REFIT_UNREACHABLE: {
    meaning: 'The API server does not answer.',
    exit: EXIT.unreachable,
    hint: 'check that the API server runs and that its address is correct',
  },
  REFIT_BAD_ANSWER: {
    meaning: 'The server answers, but not as a Kubernetes API server: with HTML, with another kind, or without an end.',
    exit: EXIT.unreachable,
    hint: 'the fault is at that address: check that it is the API server, and not a proxy or a login page before it',
  },
  REFIT_TLS: {
    meaning: 'A TLS certificate is not trusted or has expired, on either side.',
    exit: EXIT.unreachable,
    hint: 'renew the certificate, or correct the certificate authority in the kubeconfig',
  },
  REFIT_UNAUTHORIZED: {
    meaning: 'The API server does not accept the credentials.',
    exit: EXIT.denied,
    hint: 'renew the credentials in the kubeconfig',
  },
  REFIT_FORBIDDEN: {
    meaning: 'The user lacks a permission on the API server.',
    exit: EXIT.denied,
    hint: 'grant the missing permission: deploy/rbac.yaml has the roles',
  },
  REFIT_SSH: {
    meaning: 'SSH to a host fails: it cannot be reached, its host key has changed, or a step fails on it.',
    exit: EXIT.unreachable,
    hint: 'run `ssh` by hand with the same user, key and known hosts; see docs/guides/kubeadm.md',
  },
  REFIT_REFUSED: {
    meaning: 'A rule forbids this upgrade, or it is not the one that was agreed to.',
    exit: EXIT.failed,
    hint: 'see docs/guides/kubeadm.md',
  },
  REFIT_CONTROL: {
    meaning: 'The command does not apply to this plan or node in its current state.',
    exit: EXIT.failed,
    hint: 'run `refit status`',
  },
  REFIT_NO_CRD: {
    meaning: 'The cluster lacks the CustomResourceDefinitions that Refit needs.',
    exit: EXIT.failed,
    hint: 'run `kubectl apply -f deploy/crds`',
  },
  REFIT_PLAN_FAILED: { meaning: 'The plan failed.', exit: EXIT.failed, hint: 'run `refit status`' },
  REFIT_AGENT: {
    meaning: 'The agent cannot work on this host.',
    exit: EXIT.failed,
    hint: 'read the log of the agent',
  },
  REFIT_INSTALL: {
    meaning: 'Refit cannot be installed or removed here, or the cluster does not sign a certificate.',
    exit: EXIT.failed,
    hint: 'see docs/guides/k0s.md',
  },
  REFIT_TESTENV: {
    meaning: 'The real control plane for tests cannot be built or started.',
    exit: EXIT.failed,
    hint: 'see docs/internals/testenv.md',
  },
  REFIT_INTERNAL: {
    meaning: 'An unexpected error.',
    exit: EXIT.failed,
    hint: 'this is a bug in Refit: please report it with the log',
  },
} as const satisfies Readonly<Record<string, { meaning: string; exit: number; hint: string }>>;

export type ErrorCode = keyof typeof ERRORS;

export class RefitError extends Error {
  readonly code: ErrorCode;
  readonly #hint: string;

  /** `hint`: what to do; the hint of the code by default. */
  constructor(code: ErrorCode, message: string, options: ErrorOptions & { readonly hint?: string } = {}) {
    const { hint, ...rest } = options;
    super(message, rest);
    this.name = 'RefitError';
    this.code = code;
    this.#hint = hint ?? ERRORS[code].hint;
  }

  get exitCode(): number {
    return ERRORS[this.code].exit;
  }

  /** One line: code, what happened, what to do. Text of servers and nodes is made safe for a terminal. */
  get line(): string {
    return printable(`${this.code}: ${this.message.trim().replaceAll(/\s+/g, ' ')} (${this.#hint})`);
  }
}

/** The message of anything that was thrown, with the messages of its causes. */
export function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  return thrown.cause === undefined ? ownMessageOf(thrown) : `${ownMessageOf(thrown)}: ${messageOf(thrown.cause)}`;
}

/** Node gives no message of its own when all addresses of a host have failed. */
function ownMessageOf(error: Error): string {
  if (error.message !== '' || !(error instanceof AggregateError)) return error.message;
  return error.errors.map(messageOf).join(', ');
}

/** The end of the first sentence; the rest explains Node's syntax. Quotes hold what was typed, full stops included. */
const FIRST_END = /(?<=')\. (?=[A-Z])|\.?\n/;

export function usageError(error: unknown): RefitError {
  return new RefitError('REFIT_USAGE', messageOf(error).split(FIRST_END)[0] ?? '', { cause: error });
}

/** Undefined where the error is one of those; any other is thrown. */
export const unlessError =
  (isExpected: (error: unknown) => boolean) =>
  async <T>(work: Promise<T>): Promise<T | undefined> =>
    await work.catch((error: unknown) => {
      if (isExpected(error)) return undefined;
      throw error;
    });

/** Undefined where it throws. For calls whose every error means the same. */
export function ifPossible<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
