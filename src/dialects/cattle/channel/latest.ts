/** Owns the version that a Plan leads to, and the hash that tells one run from another. */
import { createHash } from 'node:crypto';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import type { Secret } from '../../../kube/types.ts';
import { digestOf } from '../job/digest.ts';
import { secretHash } from '../job/secret-hash.ts';
import { DIGEST_ANNOTATION } from '../names.ts';

/** A version as it may stand in a label: `v1.2.3+k3s1` becomes `v1.2.3-k3s1`. */
export function mungeVersion(version: string): string {
  return version.replaceAll('+', '-');
}

/** The Secrets that count into the hash, by name. */
export function hashedSecrets({ spec }: CattlePlan): string[] {
  return (spec?.secrets ?? []).filter(({ ignoreUpdates }) => ignoreUpdates !== true).map(({ name }) => name);
}

/** 56 hexadecimal digits; `secrets` are those that count, in the order of the plan. */
export function latestHash(plan: CattlePlan, version: string, secrets: readonly Secret[]): string {
  const paths = plan.metadata.annotations?.[DIGEST_ANNOTATION];
  const parts = [
    version,
    plan.spec?.serviceAccountName ?? '',
    ...(paths ? [digestOf(plan, paths)] : []),
    ...secrets.map(secretHash),
  ];
  return createHash('sha224').update(parts.join('')).digest('hex');
}
