/** Tests the warnings about fields of a policy that have no effect. */
import { expect, test } from 'vitest';
import { MODULES } from '../dialects/modules.ts';
import { policyWarnings } from './policy-warnings.ts';

const DIALECTS = MODULES.map((each) => ({ ...each, rollBack: undefined }));
const ONLY = 'only k0s Plans (autopilot) are tried again';
const OF_JOBS =
  'In plans of cattle, the backoffLimit of the Job counts (SYSTEM_UPGRADE_JOB_BACKOFF_LIMIT)';

test.each([
  [['autopilot'], []],
  [['kubeadm'], [`spec.retry has no effect on plans of kubeadm; ${ONLY}`]],
  [['cattle'], [`spec.retry has no effect on plans of cattle; ${ONLY}. ${OF_JOBS}`]],
  [
    ['capi', 'cattle', 'capi'],
    [`spec.retry has no effect on plans of capi, cattle; ${ONLY}. ${OF_JOBS}`],
  ],
] as const)(
  'the warning about retries in a policy for plans of %j says what counts instead in these plans, and in no others',
  (names, warnings) => {
    const plans = names.map((dialect) => ({ dialect }));
    expect(policyWarnings({ retry: { attempts: 2 }, plans }, DIALECTS)).toEqual(warnings);
  },
);
