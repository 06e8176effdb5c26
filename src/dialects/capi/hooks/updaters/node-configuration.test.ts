/** Proves which changes of a KubeadmConfig are claimed, and that UpdateMachine is done only after the agent's report. */
import { describe, expect, test } from 'vitest';
import { refusal } from '../../../../../test/support/builders/memory-api.ts';
import {
  ConfigurationScene,
  OWN,
  VERSION,
} from '../../../../../test/support/capi/configuration-scene.ts';
import { buildTriple } from '../../../../../test/support/capi/triples.ts';
import { later } from '../../../../../test/support/clock/times.ts';
import { machines } from '../../../../api/capi/machine.ts';
import { nodes } from '../../../../kube/resources.ts';
import { HEARTBEAT_ANNOTATION } from '../../../../signal/names.ts';
import {
  CONFIGURATION_ANNOTATION,
  CONFIGURATION_REPORT_ANNOTATION,
  configurationRequestOn,
} from '../../../../signal/node-configuration.ts';
import type { Json } from '../../../../util/json.ts';
import { changesBetween, MACHINE_SHAPE, SET_SHAPE } from '../can-update.ts';
import { applyPatches } from './hook-patch.ts';
import { claimConfiguration } from './node-configuration.ts';
import { STEPS_ANNOTATION } from './step-record.ts';

const demo = (more: object = {}): Json => ({
  files: [{ path: '/etc/demo/x', content: 'two', ...more }],
});
const alice = (keys: string[], more: object = {}): Json => ({
  name: 'alice',
  sshAuthorizedKeys: keys,
  ...more,
});
/** Lets a test use a value that the schema of a KubeadmConfig forbids. */
const odd = (value: unknown): never => value as never;
const FILES = ['bootstrap.spec.files'];

test('a node without room for a payload: its files are claimed, and its version is not', async () => {
  const scene = new ConfigurationScene();
  scene.note(HEARTBEAT_ANNOTATION, JSON.stringify({ at: later(0), room: 1000, since: later(0) }));
  expect(await scene.left({}, demo())).toEqual([]);
  const asked = scene.can({}, demo(), 'v1.35.1');
  await expect(asked).rejects.toThrow('waiting for updater refit: node n1 has 0 MiB free');
});
const USERS = ['bootstrap.spec.users'];
const argsOf = (form: string): string =>
  `bootstrap.spec.${form}Configuration.nodeRegistration.kubeletExtraArgs`;
const INIT = argsOf('init');
const JOIN = argsOf('join');
const args = (...list: [string, string][]): Json => ({
  nodeRegistration: { kubeletExtraArgs: list.map(([name, value]) => ({ name, value })) },
});

describe('a change is claimed as a whole, or not at all', () => {
  test.each<[string, Json, Json, string[]]>([
    ['a new file', {}, demo(), []],
    ['other content', demo(), demo({ content: 'three' }), []],
    ['permissions and owner', demo(), demo({ permissions: '0600', owner: 'root' }), []],
    ['an owner with its group', {}, demo({ owner: 'root:root' }), []],
    ['an owner whose name only begins with root', {}, demo({ owner: 'root:rooty' }), FILES],
    ['an owner whose name only ends with root', {}, demo({ owner: 'notroot' }), FILES],
    ['permissions of three digits', {}, demo({ permissions: '600' }), []],
    ['permissions of five digits', {}, demo({ permissions: '00644' }), FILES],
    ['permissions with a digit that is none', {}, demo({ permissions: '0648' }), FILES],
    ['content that is not to be appended', {}, demo({ append: false }), []],
    ['content that is no text', {}, demo({ content: 7 }), FILES],
    ['a file without a path', {}, { files: [{ content: 'a' }] }, FILES],
    ['a statement for cloud-init', {}, demo({ content: '{% if a %}' }), FILES],
    ['a comment for cloud-init', {}, demo({ content: '{# a #}' }), FILES],
    ['braces that cloud-init leaves alone', {}, demo({ content: '{ "a": 1 }' }), []],
    ['base64', {}, demo({ content: 'AA==', encoding: 'base64' }), FILES],
    ['gzip', {}, demo({ content: 'AA==', encoding: 'gzip+base64' }), FILES],
    ['a file that goes', demo(), {}, FILES],
    ['content of a Secret', {}, demo({ contentFrom: { secret: { name: 's', key: 'k' } } }), FILES],
    ['content that is appended', {}, demo({ append: true }), FILES],
    [
      'content that cloud-init fills in',
      {},
      demo({ content: '{{ ds.meta_data.local_ipv4 }}' }),
      FILES,
    ],
    ['a member that nothing here knows', {}, demo({ contentFormat: 'go-template' }), FILES],
    ['a draft of the agent', {}, demo({ path: '/etc/demo/.x.refit' }), FILES],
    [
      'a file below a file',
      {},
      {
        files: [
          { path: '/etc/demo/x', content: 'a' },
          { path: '/etc/demo/x/y', content: 'b' },
        ],
      },
      FILES,
    ],
    ['a file of another user', {}, demo({ owner: 'alice:alice' }), FILES],
    ['a file that others may write to', {}, demo({ permissions: '0666' }), FILES],
    ['a file that changes who runs it', {}, demo({ permissions: '4755' }), FILES],
    ['a file that the agent may not change', {}, demo({ path: '/etc/other' }), FILES],
    ['a file of kubeadm', {}, demo({ path: '/etc/kubernetes/x' }), FILES],
    [
      'one file twice',
      {},
      {
        files: [
          { path: '/etc/demo/x', content: 'a' },
          { path: '/etc/demo/x', content: 'b' },
        ],
      },
      FILES,
    ],
    ['a list of something else', {}, { files: 'x' }, FILES],
    ['too much for a Node', {}, demo({ content: 'x'.repeat(60_000) }), FILES],
    [
      'Refit covers changed SSH keys of a user',
      { users: [alice(['a'])] },
      { users: [alice(['b', 'c'])] },
      [],
    ],
    ['a new user', {}, { users: [alice(['b'])] }, USERS],
    ['a user who goes', { users: [alice(['a'])] }, { users: [] }, USERS],
    ['the last key', { users: [alice(['a'])] }, { users: [alice([])] }, USERS],
    ['keys that are no list', { users: [alice(['a'])] }, { users: [alice(odd('b'))] }, USERS],
    ['a key that is no text', { users: [alice(['a'])] }, { users: [alice(['b', odd(7)])] }, USERS],
    ['a key with a bell', { users: [alice(['a'])] }, { users: [alice(['b\u0007'])] }, USERS],
    ['an argument of no text', {}, { joinConfiguration: args(['v', odd(4)]) }, [JOIN]],
    ['a key of two lines', { users: [alice(['a'])] }, { users: [alice(['a\nb'])] }, USERS],
    [
      'keys and a shell',
      { users: [alice(['a'])] },
      { users: [alice(['b'], { shell: '/bin/sh' })] },
      USERS,
    ],
    [
      'an argument',
      { joinConfiguration: args(['v', '2']) },
      { joinConfiguration: args(['v', '4']) },
      [],
    ],
    [
      'an argument besides another',
      {},
      { joinConfiguration: args(['node-ip', '192.0.2.1'], ['v', '4']) },
      [JOIN],
    ],
    [
      'an argument that goes',
      { joinConfiguration: args(['v', '2']) },
      { joinConfiguration: args() },
      [JOIN],
    ],
    ['an argument about pods', {}, { joinConfiguration: args(['max-pods', '5']) }, [JOIN]],
    [
      'an argument that is there twice',
      {},
      { joinConfiguration: args(['v', '4'], ['v', '5']) },
      [JOIN],
    ],
    [
      'both forms',
      {},
      { initConfiguration: args(['v', '4']), joinConfiguration: args(['v', '4']) },
      [],
    ],
    [
      'two forms',
      {},
      { initConfiguration: args(['v', '4']), joinConfiguration: args(['v', '5']) },
      [INIT, JOIN],
    ],
    [
      'another member next to it',
      {},
      { ntp: { servers: ['x'] }, ...(demo() as object) },
      ['bootstrap.spec.ntp.servers'],
    ],
  ])('%s', async (_what, from, to, left) => {
    expect(await new ConfigurationScene().left(from, to)).toEqual(left);
  });

  test('nothing on nodes whose agents allow nothing, and only what all of them allow', async () => {
    expect(await new ConfigurationScene(undefined, []).left({}, demo())).toEqual(FILES);
    expect(await new ConfigurationScene(undefined, ['/etc/demo/other']).left({}, demo())).toEqual(
      FILES,
    );
    expect(await new ConfigurationScene(undefined, ['/etc/demo/x']).left({}, demo())).toEqual([]);
    expect(await new ConfigurationScene([OWN]).left({}, demo())).toEqual([]);
  });

  test('nothing where another file of the list may not be changed: part of it would count as all', async () => {
    const other = { path: '/etc/other', content: 'a' };
    const before = { files: [other] };
    const after = { files: [other, { path: '/etc/demo/x', content: 'b' }] };
    expect(await new ConfigurationScene().left(before, after)).toEqual(FILES);
    expect(
      await new ConfigurationScene(undefined, ['/etc/demo', '/etc/other']).left(before, after),
    ).toEqual([]);
  });

  test('nothing where no Node is known', () => {
    const current = buildTriple({ bootstrap: {} });
    const desired = buildTriple({ bootstrap: demo() });
    const answer = claimConfiguration('CanUpdateMachine', MACHINE_SHAPE, { current, desired }, []);
    expect(answer.bootstrapConfigPatch).toBeUndefined();
  });

  test('nothing of other objects, whatever their fields are called', () => {
    const change = (files: Json, version: string) =>
      buildTriple({ machine: { version }, infra: files, bootstrap: files });
    const current = change({}, VERSION);
    const desired = change(demo(), 'v1.35.1');
    const answer = claimConfiguration('CanUpdateMachine', MACHINE_SHAPE, { current, desired }, [
      new ConfigurationScene(),
    ]);
    expect(answer.message).toBe('covers 1 change');
    expect(answer.machinePatch ?? answer.infrastructureMachinePatch).toBeUndefined();
    expect(answer.bootstrapConfigPatch).toBeDefined();
  });

  test('nothing of another kind of bootstrap config', () => {
    const scene = new ConfigurationScene();
    const triples = [{}, demo()].map((spec) => {
      const triple = buildTriple({ bootstrap: spec });
      return { ...triple, bootstrapConfig: { kind: 'RKE2Config', metadata: { name: 'm1' }, spec } };
    });
    const [current = {}, desired = {}] = triples;
    const answer = claimConfiguration('CanUpdateMachine', MACHINE_SHAPE, { current, desired }, [
      scene,
    ]);
    expect(answer.bootstrapConfigPatch).toBeUndefined();
  });

  test('in templates of MachineSets, too', () => {
    const scene = new ConfigurationScene();
    const object = (kind: string, spec: Json) => ({
      kind,
      metadata: { name: 'x' },
      spec: { template: { spec } },
    });
    const of = (spec: Json) => ({ bootstrapConfigTemplate: object('KubeadmConfigTemplate', spec) });
    const current = of({});
    const desired = of(demo());
    const answer = claimConfiguration('CanUpdateMachineSet', SET_SHAPE, { current, desired }, [
      scene,
    ]);
    expect(changesBetween(SET_SHAPE, applyPatches(SET_SHAPE, current, answer), desired)).toEqual(
      [],
    );
  });

  test('nothing where anybody may call', async () => {
    const scene = new ConfigurationScene();
    scene.callUpdater = undefined;
    await expect(scene.can({}, demo())).rejects.toThrow(
      'updaters other than refit need --client-ca',
    );
  });
});

describe('UpdateMachine', () => {
  test('has the agent do it, and is done once the agent says so', async () => {
    const scene = new ConfigurationScene();
    await scene.can({}, demo());
    expect(await scene.update(demo())).toMatchObject({ status: 'Success', retryAfterSeconds: 2 });
    const request = configurationRequestOn(scene.node);
    expect(request?.items).toEqual([{ name: '/etc/demo/x', content: 'dHdvCg==', mode: 0o644 }]);
    expect(await scene.update(demo())).toMatchObject({
      message: 'updater configuration: node n1: waiting for its agent',
    });
    scene.note(CONFIGURATION_REPORT_ANNOTATION, JSON.stringify({ uid: 'of another request' }));
    expect(await scene.update(demo())).toMatchObject({ retryAfterSeconds: 2 });
    expect(configurationRequestOn(scene.node)).toEqual(request);
    scene.report();
    expect(await scene.update(demo())).toMatchObject({ status: 'Success', retryAfterSeconds: 0 });
    expect(scene.api.read(machines, 'm1').metadata.annotations?.[STEPS_ANNOTATION]).toBeUndefined();
  });

  test('fails with the reason of the agent, until the request is removed', async () => {
    const scene = new ConfigurationScene();
    await scene.can({}, demo());
    await scene.update(demo());
    const first = configurationRequestOn(scene.node)?.uid;
    scene.report({ failure: 'the disk is full' });
    expect(await scene.update(demo())).toMatchObject({
      status: 'Failure',
      message: `updater configuration: node n1: the disk is full; to try again, run: refit retry n1`,
    });
    scene.note(CONFIGURATION_ANNOTATION, '');
    expect(await scene.update(demo())).toMatchObject({ status: 'Success', retryAfterSeconds: 2 });
    expect(configurationRequestOn(scene.node)?.uid).not.toBe(first);
  });

  test('asks again, and is not done by the report on an earlier request, where the files change', async () => {
    const scene = new ConfigurationScene();
    await scene.can({}, demo());
    await scene.update(demo());
    scene.report();
    const first = configurationRequestOn(scene.node);
    await scene.can(demo(), demo({ content: 'three', permissions: '0600' }));
    const answer = await scene.update(demo({ content: 'three', permissions: '0600' }));
    expect(answer).toMatchObject({ status: 'Success', retryAfterSeconds: 2 });
    const second = configurationRequestOn(scene.node);
    expect(second?.uid).not.toBe(first?.uid);
    expect(second?.items).toEqual([{ name: '/etc/demo/x', content: 'dGhyZWUK', mode: 0o600 }]);
  });

  test.each([
    ['no line break at the end', 'a', 'a\n'],
    ['several of them', 'a\n\n\n', 'a\n'],
    ['one of them', 'a\nb\n', 'a\nb\n'],
    ['nothing', '', ''],
  ])('writes files with %s as cloud-init does', async (_what, content, written) => {
    const scene = new ConfigurationScene();
    await scene.can({}, demo({ content }));
    await scene.update(demo({ content }));
    const name = '/etc/demo/x';
    expect(configurationRequestOn(scene.node)?.items).toEqual([
      { name, content: Buffer.from(written).toString('base64'), mode: 0o644 },
    ]);
  });

  test('asks for keys and arguments in the form that the agent reads', async () => {
    const scene = new ConfigurationScene();
    const from = { users: [alice(['a'])] };
    const to = { users: [alice(['b', 'c'])], joinConfiguration: args(['v', '4']) };
    await scene.can(from, to);
    await scene.update(to);
    expect(configurationRequestOn(scene.node)?.items).toEqual([
      { name: 'user:alice', content: Buffer.from('b\nc\n').toString('base64'), mode: 0o600 },
      { name: 'kubelet:v', content: '4', mode: 0 },
    ]);
  });

  test('reads the Node again where somebody else wrote it, and passes on a refusal', async () => {
    const scene = new ConfigurationScene();
    await scene.can({}, demo());
    scene.api.before('replace nodes/n1', () => scene.note('example.com/other', 'x'));
    expect(await scene.update(demo())).toMatchObject({
      status: 'Success',
      retryAfterSeconds: 2,
      message: 'updater configuration: node n1: waiting for its agent',
    });
    expect(configurationRequestOn(scene.node)).toBeUndefined();
    scene.api.before('replace nodes/n1', () => {
      throw refusal(403, 'Forbidden');
    });
    await expect(scene.update(demo())).rejects.toThrow('Forbidden');
    await scene.update(demo());
    expect(configurationRequestOn(scene.node)).toBeDefined();
  });

  test('fails on a Machine that has no Node', async () => {
    const scene = new ConfigurationScene();
    await scene.can({}, demo());
    scene.api.change(machines, 'm1', ({ status: _none, ...machine }) => machine);
    const answer = await scene.update(demo());
    expect(answer).toMatchObject({
      status: 'Failure',
      message: expect.stringContaining('Machine default/m1') as string,
    });
  });

  test('is not done on a Machine whose Node is gone', async () => {
    const scene = new ConfigurationScene();
    await scene.can({}, demo());
    scene.api.remove(nodes, 'n1');
    await expect(scene.update(demo())).rejects.toThrow('NotFound');
  });

  test('is not done where the agent that accepted it may no longer', async () => {
    const scene = new ConfigurationScene();
    await scene.can({}, demo());
    scene.allow(['/etc/demo/x/y', 'user:alice']);
    expect(await scene.update(demo())).toMatchObject({
      status: 'Failure',
      message: expect.stringContaining('has no agent that may change all files') as string,
    });
  });

  test('leaves it out where it accepted nothing', async () => {
    const scene = new ConfigurationScene();
    scene.api.change(nodes, 'n1', (node) => ({
      ...node,
      status: { nodeInfo: { kubeletVersion: VERSION } },
    }));
    expect(await scene.update(demo())).toMatchObject({ status: 'Success', retryAfterSeconds: 0 });
    expect(configurationRequestOn(scene.node)).toBeUndefined();
  });
});

test('the last answer about a Machine without a MachineDeployment is lost: it is the same when asked again', async () => {
  const scene = new ConfigurationScene([OWN]);
  scene.api.change(machines, 'm1', (machine) => ({
    ...machine,
    metadata: { ...machine.metadata, labels: {} },
  }));
  expect((await scene.can({}, demo())).message).toContain('not covered: nothing');
  await scene.update(demo());
  scene.report();
  for (let call = 0; call < 2; call++)
    expect(await scene.update(demo())).toMatchObject({ status: 'Success', retryAfterSeconds: 0 });
});
