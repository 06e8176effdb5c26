/** Owns what the API server's own audit log tells of a scene. */
import { open, stat } from 'node:fs/promises';
import { controlPlane } from '../control-plane.ts';

export interface AuditEvent {
  readonly verb: string;
  readonly requestURI: string;
  readonly user: { readonly username: string };
  readonly responseStatus?: { readonly code: number };
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Others say no, too, and for reasons of the moment: that a namespace ends, or that a Node was seen with older taints. */
const DECISION = 'authorization.k8s.io/decision';

/** Where the log ends now. */
export async function endOfAudit(): Promise<number> {
  return (await stat(controlPlane().auditLog)).size;
}

/** Each request that was answered since that place. */
export async function auditedSince(place: number): Promise<AuditEvent[]> {
  await using log = await open(controlPlane().auditLog);
  const { size } = await log.stat();
  const { buffer } = await log.read({ buffer: Buffer.alloc(size - place), position: place });
  // Its last line may be half written.
  const lines = buffer.toString().split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as AuditEvent);
}

/** What Refit's processes and nodes had no right to, as `<user> <verb> <path>`. */
export function forbiddenIn(events: readonly AuditEvent[]): string[] {
  return events
    .filter(
      ({ annotations, user }) => annotations?.[DECISION] === 'forbid' && /^(refit|system:node:)/.test(user.username),
    )
    .map(({ user, verb, requestURI }) => `${user.username} ${verb} ${requestURI}`);
}
