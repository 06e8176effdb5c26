/**
 * Lists every place at which Refit creates an object with rights of its own. Somebody who chooses a part of such an
 * object acts with these rights, so the threat model says who that is.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..');
const CREATION = /\b(?:client|writer|templates)\.create\(/;
/** The parts that pass on what others create. */
const PASSED_ON = ['kube/transport/bounded-client.ts'];

/** The row of the threat model for each file. */
const ROWS: Readonly<Record<string, string>> = {
  'cli/user-name.ts': 'SelfSubjectReview',
  'coordination/disruption-lease.ts': 'Lease',
  'dialects/autopilot/command/replace-plan.ts': 'Plan',
  'dialects/autopilot/command/roll-back-deleted-plan.ts': 'Plan',
  'dialects/autopilot/command/upgrade-k0s.ts': 'Plan',
  'dialects/capi/command/capi-extension.ts': 'Namespace',
  'dialects/cattle/command/system-upgrade-controller.ts': 'CustomResourceDefinition',
  'dialects/cattle/command/upgrade-rancher.ts': 'Rancher Plan',
  'dialects/kubeadm/command/run-upgrade.ts': 'ConfigMap',
  'drain/eviction-requests.ts': 'EvictionRequest',
  'engine/execute/writes.ts': 'Job of a Rancher Plan',
  'engine/report/node-rollout-writer.ts': 'NodeRollout',
  'health/ask-jobs.ts': 'Job of a policy',
  'hooks/job-hook.ts': 'Job of a policy',
  'install/credentials/issue.ts': 'CertificateSigningRequest',
  'kube/election/observed-lease.ts': 'Lease',
  'kube/event-series.ts': 'Event',
  'kube/template-jobs.ts': 'Job of a policy',
  'ready/access.ts': 'SelfSubjectAccessReview',
  'ready/asking.ts': 'SubjectAccessReview',
  'updates/new-version.ts': 'Event',
  'updates/update-follower.ts': 'Plan',
};

test('each place at which Refit creates an object is in the list', () => {
  const files = globSync('**/*.ts', { cwd: join(ROOT, 'src') }).filter(
    (name) => !name.endsWith('.test.ts') && !PASSED_ON.includes(name),
  );
  const found = files.filter((name) =>
    CREATION.test(readFileSync(join(ROOT, 'src', name), 'utf8')),
  );
  expect(found.toSorted()).toEqual(Object.keys(ROWS).toSorted());
});

test('the threat model says for each kind of these objects who chooses what is created', () => {
  const page = readFileSync(join(ROOT, 'docs/internals/threat-model.md'), 'utf8');
  const [, after = ''] = page.split('\n## Objects that Refit creates with its own rights\n');
  const [section = ''] = after.split('\n## ');
  const rows = [...section.matchAll(/^\| ([^|]+?) \|/gm)].map(([, name = '']) => name).slice(1);
  expect(rows.toSorted()).toEqual([...new Set(Object.values(ROWS))].toSorted());
});
