/** Proves that `refit validate` refuses the same volumes and mounts of a Plan as a real API server. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DEFAULT_JOB_SETTINGS } from '../../src/dialects/cattle/plan/config.ts';
import { fieldFindings } from '../../src/dialects/cattle/plan/field-problems.ts';
import { jobOf } from '../../src/dialects/cattle/plan/job.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { jobs } from '../../src/kube/resources.ts';
import { messageOf } from '../../src/util/errors.ts';
import type { CattleSpec } from '../support/builders/cattle-plans.ts';
import { nodeOf, planOf } from './cattle-rig.ts';
import { clientOf } from './drain-stage.ts';

let admin: KubeClient;

beforeAll(async () => {
  admin = await clientOf('admin');
});

afterAll(() => admin.close());

type Volume = NonNullable<CattleSpec['upgrade']['volumes']>[number];

function volume(name: string, destination: string): Volume {
  return { name, source: '/srv', destination };
}

function upgradeWith(...volumes: readonly Volume[]): Partial<CattleSpec> {
  return { upgrade: { image: 'example.com/upgrade', volumes: [...volumes] } };
}

const OWN = upgradeWith(volume('own', '/own'));
const IMAGE = 'example.com/prepare';

/** Returns the API server's message about a Job of a Plan with these fields; an empty text if it accepts the Job. */
async function answerTo(spec: Partial<CattleSpec>): Promise<string> {
  const name = 'system-upgrade-controller';
  const plan = planOf('volumes', spec);
  const metadata = { ...plan.metadata, namespace: 'default', uid: 'of-no-object' };
  const config = { name, namespace: 'default', job: DEFAULT_JOB_SETTINGS };
  const job = jobOf(config, {
    plan: { ...plan, metadata },
    node: nodeOf('volumes-1', {}),
    version: 'v1',
    hash: 'abc',
    settings: DEFAULT_JOB_SETTINGS,
  });
  return await admin
    .create(jobs, job, { namespace: 'default', dryRun: true })
    .then(() => '')
    .catch(messageOf);
}

test.each<[string, Partial<CattleSpec>]>([
  ['a volume', OWN],
  ['a colon in a path', upgradeWith(volume('own', '/a:/b'))],
  ['a slash more than a path of Refit', upgradeWith(volume('own', '/host/'))],
  [
    'one path in two containers',
    { ...OWN, prepare: { image: IMAGE, volumes: [volume('own', '/own')] } },
  ],
])('%s is taken', async (_, spec) => {
  expect(fieldFindings(planOf('p', spec)).problems).toEqual([]);
  expect(await answerTo(spec)).toBe('');
});

test.each<[string, Partial<CattleSpec>, string]>([
  ['two volumes with one name', upgradeWith(volume('a', '/a'), volume('a', '/b')), 'Duplicate'],
  ['the name of a volume of Refit', upgradeWith(volume('host-root', '/a')), 'Duplicate'],
  [
    'the name of the volume of a Secret',
    { ...upgradeWith(volume('secret-a', '/a')), secrets: [{ name: 'a', path: '' }] },
    'Duplicate',
  ],
  [
    'one Secret twice',
    {
      secrets: [
        { name: 'a', path: 'a' },
        { name: 'a', path: 'b' },
      ],
    },
    'Duplicate',
  ],
  ['two mounts with one path', upgradeWith(volume('a', '/a'), volume('b', '/a')), 'unique'],
  ['the path of the host', upgradeWith(volume('a', '/host')), 'unique'],
  [
    'a Secret at the path of the pod',
    { secrets: [{ name: 'a', path: '/run/system-upgrade/pod' }] },
    'unique',
  ],
  [
    'the path of a Secret',
    {
      ...upgradeWith(volume('a', '/run/system-upgrade/secrets/a')),
      secrets: [{ name: 'a', path: '' }],
    },
    'unique',
  ],
  [
    'two mounts of the preparation with one path',
    { ...OWN, prepare: { image: IMAGE, volumes: [volume('own', '/a'), volume('own', '/a')] } },
    'unique',
  ],
  [
    'no path in the preparation',
    { ...OWN, prepare: { image: IMAGE, volumes: [volume('own', '')] } },
    'Required',
  ],
])('%s is refused', async (_, spec, words) => {
  expect(await answerTo(spec)).toContain(words);
  expect(fieldFindings(planOf('p', spec)).problems).toHaveLength(1);
});
