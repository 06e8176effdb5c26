/** Reads requests from the API server's audit log. */
import { open, stat } from 'node:fs/promises';
import { controlPlane } from './control-plane.ts';

export interface AuditEvent {
  readonly verb: string;
  readonly requestURI: string;
  /** RFC 3339 with microseconds. */
  readonly requestReceivedTimestamp: string;
  readonly user: { readonly username: string };
  /** Absent for paths such as /version. */
  readonly objectRef?: {
    readonly resource: string;
    readonly subresource?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code: number };
  readonly annotations?: Readonly<Record<string, string>>;
}

/**
 * The annotation with the decision of the authorization. The status code is not enough, because admission also refuses
 * requests for temporary reasons: a namespace is being deleted, or a Node had older taints.
 */
const DECISION = 'authorization.k8s.io/decision';

/** The present end of the log. */
export async function endOfAudit(): Promise<number> {
  return (await stat(controlPlane().auditLog)).size;
}

/** Returns each request that was answered after that position in the log, and whose line contains `text`. */
export async function auditedSince(place: number, text = ''): Promise<AuditEvent[]> {
  await using log = await open(controlPlane().auditLog);
  const { size } = await log.stat();
  const { buffer } = await log.read({ buffer: Buffer.alloc(size - place), position: place });
  // The last line may be incomplete.
  const lines = buffer.toString().split('\n').slice(0, -1);
  return lines.filter((line) => line.includes(text)).map((line) => JSON.parse(line) as AuditEvent);
}

/** Forbidden requests of Refit's processes and of nodes, as `<user> <verb> <path>`. */
export function forbiddenIn(events: readonly AuditEvent[]): string[] {
  return events
    .filter(
      ({ annotations, user }) =>
        annotations?.[DECISION] === 'forbid' && /^(refit|system:node:)/.test(user.username),
    )
    .map(({ user, verb, requestURI }) => `${user.username} ${verb} ${requestURI}`);
}
