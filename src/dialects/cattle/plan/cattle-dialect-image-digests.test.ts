/** Tests that a Plan waits for the digests of its images if a policy requires them, and what its Job then runs. */
import { expect, test } from 'vitest';
import {
  dialect,
  job,
  NOW,
  node,
  of,
  policyOf,
  worldOf,
} from '../../../../test/support/builders/cattle-decisions.ts';
import type { CattleSpec } from '../../../../test/support/builders/cattle-plans.ts';
import { decide } from '../../../../test/support/builders/decisions.ts';
import { gather } from '../../../engine/snapshot/gather.ts';

const DIGEST = `@sha256:${'a'.repeat(64)}`;
/** An image that no node pulls before it starts, because it installs neither K3s nor RKE2. */
const TAGGED = 'example.com/os-upgrade:v1.2.3';

/** Returns how the Plan waits, or `starts`. */
function outcomeOf(spec: Partial<CattleSpec>, requireImageDigest = true): string {
  const nodes = [node('a')];
  const before = of(spec);
  const policy = { ...policyOf(before), name: 'strict', requireImageDigest };
  const first = decide(gather(dialect, before, worldOf({ plan: before, nodes }), NOW), policy, NOW);
  const plan = first.record ? dialect.project(first.record, before, NOW) : before;
  if (plan.status?.applying?.length === 1) return 'starts';
  const snapshot = gather(dialect, plan, worldOf({ plan, nodes }), NOW);
  const [wait] = decide(snapshot, policy, NOW).waits;
  return `${wait?.reason.code}: ${wait?.reason.message}`;
}

const waits = (part: string, image: string): string =>
  `Unverified: the image "${image}" of spec.${part}.image has no digest`;

test.each<[string, Partial<CattleSpec>, string]>([
  ['whose image has a digest', { upgrade: { image: `${TAGGED}${DIGEST}` } }, 'starts'],
  ['whose image has only a tag', { upgrade: { image: TAGGED } }, waits('upgrade', TAGGED)],
  [
    'whose prepare image has only a tag',
    { upgrade: { image: `${TAGGED}${DIGEST}` }, prepare: { image: TAGGED } },
    waits('prepare', TAGGED),
  ],
])(
  'under a policy that requires digests, the start of a Plan %s depends on its digests',
  (_name, spec, outcome) => {
    expect(outcomeOf(spec)).toContain(outcome);
    expect(outcomeOf(spec, false)).toBe('starts');
  },
);

test.each([`example.com/os-upgrade${DIGEST}`, `${TAGGED}${DIGEST}`])(
  'the Job of a Plan with a digest runs exactly the image that the Plan names: %s',
  (image) => {
    const { spec } = job('a', [], 'v1.2.3', { upgrade: { image }, prepare: { image } });
    const template = spec?.['template'] as { spec: Record<string, { image: string }[]> };
    const { containers = [], initContainers = [] } = template.spec;
    expect([...initContainers, ...containers].map((each) => each.image)).toEqual([image, image]);
  },
);
