/**
 * Tests every expression of the guide on health checks, with an object that must pass and with an object that must not
 * pass.
 */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { compileCel } from '../../src/health/cel.ts';

const GUIDE = readFileSync('docs/guides/health-checks.md', 'utf8');

const SAMPLES: Readonly<Record<string, { good: object[]; bad: object[] }>> = {
  StatefulSet: {
    good: [{ spec: { replicas: 3 }, status: { readyReplicas: 3 } }, { spec: { replicas: 0 } }],
    bad: [{ spec: { replicas: 3 }, status: {} }],
  },
  CephCluster: {
    good: [{ status: { ceph: { health: 'HEALTH_OK' } } }],
    bad: [{ status: { ceph: { health: 'HEALTH_WARN' } } }, { status: {} }],
  },
  Cluster: {
    good: [{ spec: { instances: 3 }, status: { readyInstances: 3 } }],
    bad: [{ spec: { instances: 3 }, status: { readyInstances: 2 } }],
  },
  Application: {
    good: [{ status: { health: { status: 'Healthy' } } }],
    bad: [{ status: { health: { status: 'Degraded' } } }],
  },
  Certificate: {
    good: [{ status: { conditions: [{ type: 'Ready', status: 'True' }] } }],
    bad: [{ status: { conditions: [{ type: 'Ready', status: 'False' }] } }, { status: {} }],
  },
  PersistentVolumeClaim: {
    good: [{ status: { phase: 'Bound' } }],
    bad: [{ status: { phase: 'Pending' } }],
  },
  Node: {
    good: [{ status: { conditions: [{ type: 'DiskPressure', status: 'False' }] } }],
    bad: [{ status: { conditions: [{ type: 'DiskPressure', status: 'True' }] } }],
  },
  Volume: {
    good: [
      { status: { state: 'attached', robustness: 'healthy' } },
      { status: { state: 'detached', robustness: 'unknown' } },
    ],
    bad: [{ status: { state: 'attached', robustness: 'degraded' } }],
  },
};

const ROW = /^\| [^|]+ \| `[^`]+`, `(?<kind>\w+)` \| `(?<expression>[^`]+)` \|$/gm;
const rows = [...GUIDE.matchAll(ROW)].map(({ groups = {} }) => ({
  kind: groups['kind'] ?? '',
  expression: (groups['expression'] ?? '').replaceAll('\\|', '|'),
}));

test('there is a sample for each row', () => {
  expect(rows.map(({ kind }) => kind).toSorted()).toEqual(Object.keys(SAMPLES).toSorted());
});

test.each(rows)('$kind', ({ kind, expression }) => {
  const program = compileCel(expression);
  if (typeof program === 'string') expect.fail(program);
  const { good, bad } = SAMPLES[kind] ?? { good: [], bad: [] };
  const said = (object: object): unknown => program.evaluate(object);
  for (const object of good) expect(said(object)).toMatchObject({ kind: 'value', value: true });
  for (const object of bad) expect(said(object)).toMatchObject({ kind: 'value', value: false });
});
