/** Owns the labels and annotations of `upgrade.cattle.io`, which other tools read. */

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
