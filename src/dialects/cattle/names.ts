/** Owns the labels and annotations of `upgrade.cattle.io`, which other tools read. */
import { createHash } from 'node:crypto';

const GROUP = 'upgrade.cattle.io';

export const CONTROLLER_LABEL = `${GROUP}/controller`;
export const EXCLUSIVE_LABEL = `${GROUP}/exclusive`;
export const NODE_LABEL = `${GROUP}/node`;
export const PLAN_LABEL = `${GROUP}/plan`;
export const VERSION_LABEL = `${GROUP}/version`;
export const DIGEST_ANNOTATION = `${GROUP}/digest`;
export const TTL_ANNOTATION = `${GROUP}/ttl-seconds-after-finished`;

export const HOSTNAME_LABEL = 'kubernetes.io/hostname';

/** On Jobs, pods and nodes: the hash that they are about, or have. */
export const hashLabelOf = (planName: string): string => `plan.${GROUP}/${planName}`;

/** The value of a node's hash label that keeps the plan away from it. */
export const DISABLED = 'disabled';

const MAX = 64;

/** The parts with `-` between them. What is cut never ends in `-` or `.` before its suffix. */
export function shortenedName(...parts: readonly string[]): string {
  const full = parts.join('-');
  if (full.length < MAX) return full;
  const digest = createHash('sha256').update(full).digest('hex');
  const cut = MAX - 7;
  const endsWell = /[a-z0-9]/.test(full.charAt(cut - 1));
  return endsWell ? `${full.slice(0, cut)}-${digest.slice(0, 5)}` : `${full.slice(0, cut - 1)}-${digest.slice(0, 6)}`;
}
