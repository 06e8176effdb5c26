/**
 * Defines labels, annotations and shortened names. They are exactly those of the original, because other
 * tools read them.
 */
import { hash } from 'node:crypto';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import type { KubeObject } from '../../../kube/resources.ts';
import { labelMatcher } from '../../../kube/selectors.ts';
import { onceForEach } from '../../../util/memo.ts';
import { ownMember } from '../../../util/own-member.ts';

const GROUP = 'upgrade.cattle.io';

export const CONTROLLER_LABEL = `${GROUP}/controller`;
export const EXCLUSIVE_LABEL = `${GROUP}/exclusive`;
export const NODE_LABEL = `${GROUP}/node`;
export const PLAN_LABEL = `${GROUP}/plan`;
export const VERSION_LABEL = `${GROUP}/version`;
export const DIGEST_ANNOTATION = `${GROUP}/digest`;
/** Marks a Job that Refit starts only after the leader has drained the node. */
export const HELD_ANNOTATION = `refit.${GROUP}/drained-by-leader`;
/** Identifies the machine for which Refit made the Job. */
export const MACHINE_ANNOTATION = `refit.${GROUP}/machine`;
export const TTL_ANNOTATION = `${GROUP}/ttl-seconds-after-finished`;

/**
 * The prefix of the control annotations on a Plan. The original copies annotations of a Plan to its Jobs, except those
 * with `cattle.io/` in the key.
 */
export const CONTROL_PREFIX = `refit.${GROUP}/`;

export const HOSTNAME_LABEL = 'kubernetes.io/hostname';

/**
 * Returns the key of the label with a hash of the Plan. On Jobs and pods, the label has the hash of the version that
 * they install. On nodes, it has the hash of the version that was installed last.
 */
export const hashLabelOf = (planName: string): string => `plan.${GROUP}/${planName}`;

/**
 * Returns the key of the node annotation that records whether a Job of the Plan set the cordon. The original controller
 * ignores this annotation.
 */
export const cordonMarkOf = (planName: string): string => `cordon.refit.${GROUP}/${planName}`;

/** What the keys of records name. Two namespaces may have Plans of one name, each with a controller of its own. */
type PlanName = Pick<CattlePlan['metadata'], 'name' | 'namespace'>;

/**
 * Returns the key of a record on a Node. The name of the hash label cannot say the namespace, because the original
 * defines it. The name of a record says it, so that no Plan overwrites the record of another Plan.
 */
const keyOfRecord = (kind: 'attempt' | 'upgraded', { name, namespace = '' }: PlanName): string =>
  `${namespace === '' ? '' : `${namespace}.`}${kind}.refit.${GROUP}/${name}`;

/** Returns the key of the node annotation that records the present attempt of the Plan on the node. */
export const attemptKeyOf = (plan: PlanName): string => keyOfRecord('attempt', plan);

/** Returns the key of the node annotation that records the last upgrade of the node by the Plan. */
export const upgradeKeyOf = (plan: PlanName): string => keyOfRecord('upgraded', plan);

const RECORD_KEY = /^(?:([^./]+)\.)?(?:attempt|upgraded)\.refit\.upgrade\.cattle\.io\/(.+)$/;

/**
 * Returns the Plan in the key of a record on a Node; undefined for any other key. A key without a namespace is of an
 * earlier build of Refit.
 */
export function planOfRecord(key: string): PlanName | undefined {
  const [, namespace, name] = RECORD_KEY.exec(key) ?? [];
  return name === undefined ? undefined : { name, ...(namespace !== undefined && { namespace }) };
}

/** Returns the version in a form that a label value may have: `v1.2.3+k3s1` becomes `v1.2.3-k3s1`. */
export function mungeVersion(version: string): string {
  return version.replaceAll('+', '-');
}

/** A node with this value in its hash label is never upgraded by the plan. */
export const DISABLED = 'disabled';

export function hashOn({ metadata }: KubeObject, plan: CattlePlan): string | undefined {
  return ownMember(metadata.labels, hashLabelOf(plan.metadata.name));
}

const MAX = 64;

/**
 * Returns true if the selector of the Plan matches the node, and the node is not excluded by its
 * hash label.
 */
export function selects(plan: CattlePlan, { metadata: { labels = {} } }: KubeObject): boolean {
  return labels[HOSTNAME_LABEL] !== undefined && selectorOf(plan)(labels);
}

const selectorOf = onceForEach(({ metadata, spec }: CattlePlan) => {
  const matches = labelMatcher(spec?.nodeSelector);
  const own = hashLabelOf(metadata.name);
  return (labels: Readonly<Record<string, string>>): boolean =>
    ownMember(labels, own) !== DISABLED && matches(labels);
});

/** Joins the parts with `-`. A name above 63 characters is cut and gets a hash, as in the original. */
export function shortenedName(...parts: readonly string[]): string {
  const full = parts.join('-');
  if (full.length < MAX) return full;
  const digest = hash('sha256', full);
  const cut = MAX - 7;
  const endsWell = /[a-z0-9]/.test(full.charAt(cut - 1));
  return endsWell
    ? `${full.slice(0, cut)}-${digest.slice(0, 5)}`
    : `${full.slice(0, cut - 1)}-${digest.slice(0, 6)}`;
}

/** Expands variables as kubelets do: `$$` becomes `$`, and references to unknown names are not changed. */
export function expandedLabels(
  labels: Readonly<Record<string, string>> = {},
  version: string,
  hash: string,
) {
  const known: Readonly<Record<string, string>> = {
    $$: '$',
    '$(LATEST_VERSION)': version,
    '$(LATEST_HASH)': hash,
  };
  const expanded = (text: string): string => {
    // After the last closing parenthesis, there can be no reference. The pattern must not search there, because it
    // would scan to the end of the text at each `$(`.
    const end = text.lastIndexOf(')') + 1;
    const references = text
      .slice(0, end)
      .replaceAll(/\$\$|\$\([^)]*\)/g, (found) => ownMember(known, found) ?? found);
    return references + text.slice(end).replaceAll('$$', () => '$');
  };
  return Object.fromEntries(Object.entries(labels).map(([key, value]) => [key, expanded(value)]));
}
