/** Tests that `refit validate` compares Plans with the policies of the same files. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { buildCattlePlan, type CattleSpec } from '../../test/support/builders/cattle-plans.ts';
import { validate } from '../../test/support/builders/validation.ts';
import type { UpgradePolicySpec } from '../api/refit/upgrade-policy.ts';

const DIGEST = `rancher/k3s-upgrade@sha256:${'a'.repeat(64)}`;
const CHANNEL = 'https://update.k3s.io/v1-release/channels/stable';
const STRICT: UpgradePolicySpec = { payloads: { requireImageDigest: true } };
const EXCLUSIVE =
  'spec.channel and spec.payloads.requireImageDigest of UpgradePolicy strict exclude each other';

const policy = (name: string, spec: UpgradePolicySpec) => ({
  apiVersion: 'upgrade.refit.dev/v1alpha1',
  kind: 'UpgradePolicy',
  metadata: { name },
  spec,
});

/** Returns the warnings about the Plan in a file with these policies. */
async function warningsAbout(
  spec: Partial<CattleSpec>,
  policies: readonly object[],
): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'refit-validate-'));
  onTestFinished(async () => await rm(folder, { recursive: true }));
  const plan = buildCattlePlan('p', { serviceAccountName: 'a', version: 'v1.36.3-k3s1', ...spec });
  const all = [policies[0], plan, ...policies.slice(1)].filter((each) => each !== undefined);
  const path = join(folder, 'all.yaml');
  await writeFile(path, all.map((each) => stringify(each)).join('---\n'));
  let said = '';
  await validate([path], (text) => {
    said += text;
  });
  return said.split('\n').filter((line) => line.includes('warning: ') && !line.includes('effect'));
}

const CHANNEL_WITHOUT_VERSION: Partial<CattleSpec> = {
  version: '',
  channel: CHANNEL,
  upgrade: { image: 'rancher/k3s-upgrade' },
};

test.each<[string, Partial<CattleSpec>, readonly object[], string[]]>([
  ['no policy', CHANNEL_WITHOUT_VERSION, [], []],
  ['a policy that asks for nothing', CHANNEL_WITHOUT_VERSION, [policy('plain', {})], []],
  [
    'a channel',
    CHANNEL_WITHOUT_VERSION,
    [policy('strict', STRICT)],
    [`${EXCLUSIVE}: a channel gives the image a tag and no digest, so no node would start`],
  ],
  [
    'a channel, and an image with a digest',
    { ...CHANNEL_WITHOUT_VERSION, upgrade: { image: DIGEST } },
    [policy('strict', STRICT)],
    [`${EXCLUSIVE}: the digest says what is installed`],
  ],
  [
    'a version and no digest',
    { upgrade: { image: 'rancher/k3s-upgrade' } },
    [policy('strict', STRICT)],
    ['no node would start: the image "rancher/k3s-upgrade" of spec.upgrade.image has no digest'],
  ],
  ['a version and a digest', { upgrade: { image: DIGEST } }, [policy('strict', STRICT)], []],
  [
    'a policy that covers other Plans',
    CHANNEL_WITHOUT_VERSION,
    [policy('strict', { ...STRICT, plans: [{ dialect: 'autopilot' }, { name: 'other' }] })],
    [],
  ],
  [
    'a more specific policy that does not ask for digests, behind the Plan',
    CHANNEL_WITHOUT_VERSION,
    [policy('strict', STRICT), policy('own', { plans: [{ name: 'p' }] })],
    [],
  ],
  [
    'a more specific policy that asks for digests, behind the Plan',
    CHANNEL_WITHOUT_VERSION,
    [policy('plain', {}), policy('strict', { ...STRICT, plans: [{ name: 'p' }] })],
    [EXCLUSIVE],
  ],
])(
  'refit validate compares a Plan of Rancher with its policy: %s',
  async (_name, spec, policies, expected) => {
    const warnings = await warningsAbout(spec, policies);
    expect(warnings).toHaveLength(expected.length);
    for (const [index, part] of expected.entries()) expect(warnings[index]).toContain(part);
  },
);
