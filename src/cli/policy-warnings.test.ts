/** Tests the warnings about fields of a policy that have no effect. */
import { expect, test } from 'vitest';
import type { DialectName } from '../api/refit/upgrade-policy.ts';
import { MODULES } from '../dialects/modules.ts';
import { policyWarnings } from './policy-warnings.ts';

const OF_CATTLE =
  'spec.retry has no effect on plans of cattle: the backoffLimit of the Job counts (SYSTEM_UPGRADE_JOB_BACKOFF_LIMIT)';
const OF_MACHINES =
  'spec.retry has only a part of the effect on plans of capi: a Machine that missed `deadlines.target` is not tried again, because its agent may be gone; run refit retry then';

test.each<[string, readonly (DialectName | undefined)[] | undefined, string[]]>([
  ['plans of k0s', ['autopilot'], []],
  ['plans of kubeadm', ['kubeadm'], []],
  ['plans of Rancher and Machines', ['capi', 'cattle', 'capi'], [OF_CATTLE, OF_MACHINES]],
  ['an entry without a dialect', [undefined, 'autopilot'], [OF_CATTLE, OF_MACHINES]],
  ['all plans', undefined, [OF_CATTLE, OF_MACHINES]],
])(
  'a policy with retries for %s warns about the plans that have none, and says what counts instead',
  (_name, names, warnings) => {
    const plans = names?.map((dialect) => (dialect === undefined ? { name: 'a' } : { dialect }));
    const spec = { retry: { attempts: 2 }, ...(plans === undefined ? {} : { plans }) };
    expect(policyWarnings(spec, MODULES).toSorted()).toEqual(warnings.toSorted());
  },
);

test('fields with the same reason share one warning, and a field that is false is not set', () => {
  const spec = {
    plans: [{ dialect: 'cattle' as const }],
    soak: '1m',
    agents: { require: 'Refit' as const },
    payloads: { requireSha256: false },
    waves: [{ percent: 10, settle: '1h', failureBudget: 1 }, {}],
  };
  expect(policyWarnings(spec, MODULES)).toEqual([
    'spec.soak, spec.agents.require have no effect on plans of cattle: its Jobs need no agent on the node',
    'spec.waves[].failureBudget has no effect on plans of cattle: failed nodes keep their slots, so `spec.failureBudget` counts in every wave',
  ]);
});

test('waves for Machines of Cluster API warn that no owner waits for another, and that control planes have no waves', () => {
  const plans = [{ dialect: 'capi' as const, namespace: 'prod' }];
  const waves = [{ selector: { matchLabels: { pool: 'canary' } } }, {}];
  expect(policyWarnings({ plans, waves }, MODULES)).toEqual([
    expect.stringMatching(
      /; the waves of an owner do not wait for another owner, and the Machines of a control plane are in no wave$/,
    ),
  ]);
});
