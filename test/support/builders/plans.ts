/**
 * Autopilot Plans for tests. They contain the documented example, which is complete and valid. Each test changes one
 * thing in it.
 */
import type { K0sUpdate, Plan, TargetSpec } from '../../../src/api/autopilot/plan.ts';
import { later } from '../clock/times.ts';

export const SHA256 = 'ab'.repeat(32);

export function listed(...nodes: string[]): TargetSpec {
  return { discovery: { static: { nodes } } };
}

export function selected(labels?: string, fields?: string): TargetSpec {
  return {
    discovery: {
      selector: {
        ...(labels === undefined ? {} : { labels }),
        ...(fields === undefined ? {} : { fields }),
      },
    },
  };
}

/**
 * Returns an update of three controllers, which are listed by name, and of the workers of the pool blue, two workers at
 * a time.
 */
export function buildUpdate(more: Partial<K0sUpdate> = {}): K0sUpdate {
  return {
    version: 'v1.36.3+k0s.2',
    platforms: { 'linux-amd64': { url: 'https://example.com/k0s', sha256: SHA256 } },
    targets: {
      controllers: listed('c1', 'c2', 'c3'),
      workers: { ...selected('pool=blue'), limits: { concurrent: 2 } },
    },
    ...more,
  };
}

export function buildPlan(spec: Partial<Plan['spec']> = {}, status?: Plan['status']): Plan {
  return {
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind: 'Plan',
    metadata: {
      name: 'autopilot',
      uid: 'plan-uid',
      resourceVersion: '1',
      creationTimestamp: later(0),
    },
    spec: { id: 'id1', timestamp: 'now', commands: [{ k0supdate: buildUpdate() }], ...spec },
    ...(status ? { status } : {}),
  };
}
