/** Reads from the audit logs of all API servers what was changed, in the form of the recordings of real k0s. */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { SIGNAL_DATA_ANNOTATION } from '../../../../src/signal/names.ts';
import type { Machine } from '../../machines/machine.ts';

/** One call that changed something, or was refused. */
export interface AuditedWrite {
  /** Milliseconds since 1970, when the API server received the call. */
  readonly at: number;
  /** The authenticated user. */
  readonly by: string;
  /** The program, as it calls itself. */
  readonly agent: string;
  /** The controller whose API server received the call. */
  readonly via: string;
  readonly verb: string;
  /** The plural name with the subresource, such as `nodes/status`. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly code: number;
  /** The object or the patch that was sent. It is absent for resources whose content is not logged. */
  readonly sent: unknown;
}

interface Line {
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly userAgent?: string;
  readonly objectRef?: {
    readonly resource: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number };
  readonly requestReceivedTimestamp: string;
  readonly requestObject?: { readonly metadata?: { readonly name?: string } };
}

/** Reads the audit logs from the moment at which the object was made. */
export class AuditLogs {
  readonly #logs: readonly {
    readonly name: string;
    readonly path: string;
    readonly start: number;
  }[];

  constructor(controllers: readonly Machine[]) {
    this.#logs = controllers.map(({ name, root }) => {
      const path = join(root, 'var/log/audit.log');
      return { name, path, start: statSync(path).size };
    });
  }

  /** Returns all writes so far, in the order of time. */
  writes(): AuditedWrite[] {
    const all = this.#logs.flatMap(({ name, path, start }) =>
      readFileSync(path)
        .subarray(start)
        .toString()
        .split('\n')
        .flatMap((line) => writeIn(line, name)),
    );
    return all.toSorted((a, b) => a.at - b.at);
  }
}

function writeIn(line: string, via: string): AuditedWrite[] {
  // The last line may be half written, and the first one may be cut.
  if (!line.startsWith('{') || !line.endsWith('}')) return [];
  const { objectRef: ref, requestObject: sent, ...rest } = JSON.parse(line) as Line;
  if (ref === undefined) return [];
  return [
    {
      at: Date.parse(rest.requestReceivedTimestamp),
      by: rest.user.username,
      agent: rest.userAgent ?? '',
      via,
      verb: rest.verb,
      resource: ref.subresource ? `${ref.resource}/${ref.subresource}` : ref.resource,
      namespace: ref.namespace ?? '',
      name: ref.name ?? sent?.metadata?.name ?? '',
      code: rest.responseStatus?.code ?? 0,
      sent,
    },
  ];
}

/** Returns the status of the signal that a write left on a Node or a ControlNode; undefined if it is not about a signal. */
export function statusIn(write: AuditedWrite): string | undefined {
  if (write.code >= 300 || !/^(?:nodes|controlnodes)$/.test(write.resource)) return undefined;
  const text = annotationIn(write.sent, SIGNAL_DATA_ANNOTATION);
  if (text === undefined) return undefined;
  try {
    const { status } = JSON.parse(text) as { status?: { status?: string } | null };
    return status?.status ?? 'Signalled';
  } catch {
    return undefined;
  }
}

/** Returns the value that an object, a merge patch or a JSON patch gives an annotation. */
function annotationIn(sent: unknown, name: string): string | undefined {
  if (Array.isArray(sent)) {
    const path = `/metadata/annotations/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    const steps = sent as readonly { readonly path?: string; readonly value?: unknown }[];
    for (const step of steps) {
      if (step.path === path && typeof step.value === 'string') return step.value;
      if (step.path === '/metadata/annotations') return valueOf(step.value, name);
    }
    return undefined;
  }
  const { metadata } = (sent ?? {}) as { metadata?: { annotations?: unknown } };
  return valueOf(metadata?.annotations, name);
}

function valueOf(annotations: unknown, name: string): string | undefined {
  const value = ((annotations ?? {}) as Readonly<Record<string, unknown>>)[name];
  return typeof value === 'string' ? value : undefined;
}
