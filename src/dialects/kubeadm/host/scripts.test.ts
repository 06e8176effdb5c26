/** Proves which script each task gets, and with which values. The agent's tests run the scripts. */
import { describe, expect, test } from 'vitest';
import { wholeScript } from './filled-script.ts';
import type { Host, Upgrade } from './host.ts';
import * as scripts from './scripts.ts';

/** Returns the values of a script. The script must end with the text of the script `name`. */
function valuesIn(script: string, name: string): Record<string, string> {
  const own = wholeScript(name);
  expect(script.endsWith(own)).toBe(true);
  const lines = script.slice(0, -own.length).matchAll(/^(\w+)='((?:[^']|'\\'')*)'$/gm);
  return Object.fromEntries(
    [...lines].map(([, key = '', value = '']) => [key, value.replaceAll(`'\\''`, `'`)]),
  );
}

/**
 * Returns the values of a script that runs in its own session. Checks that the script waits `wait` seconds for another
 * step.
 */
function valuesInSession(script: string, name: string, wait = '1800'): Record<string, string> {
  const { BODY = '', ...others } = valuesIn(script, 'detached.sh');
  expect(others).toEqual({ BUSY: '75', WAIT: wait });
  return valuesIn(BODY, name);
}

const CONTROLLER: Host = { name: 'cp1', role: 'controlPlane' };
const WORKER: Host = { name: 'w1', role: 'worker' };
const UPGRADE: Upgrade = {
  version: 'v1.36.3',
  binaries: { kubeadm: { path: '/a', sha256: 'ABC' }, kubelet: { path: '/b' } },
  kubeadm: {},
};
const CONTAINERD = {
  version: 'v2.3.3',
  binaries: {
    containerd: { path: '/c' },
    runc: { url: 'https://user:secret@h/r-{arch}?a=1', sha256: { arm64: 'AA', amd64: 'bb' } },
  },
};
const WHOLE: Upgrade = {
  ...UPGRADE,
  containerd: CONTAINERD,
  kubeadm: { config: '/etc/c.yaml', patches: "/etc/it's" },
  etcdSnapshotCertificate: 'PEM',
};
const SOURCES = {
  NAMES: 'kubeadm kubelet',
  SOURCES: [
    'kubeadm field binaries',
    'kubeadm kind path',
    'kubeadm source /a',
    'kubeadm curl url = "/a"',
    'kubeadm shown /a',
    'kubeadm sha256 abc',
    'kubelet field binaries',
    'kubelet kind path',
    'kubelet source /b',
    'kubelet curl url = "/b"',
    'kubelet shown /b',
    'kubelet sha256 ',
  ].join('\n'),
};
const CONTAINERD_VALUES = {
  CONTAINERD_VERSION: 'v2.3.3',
  CONTAINERD_NAMES: 'runc containerd',
  CONTAINERD_SOURCES: [
    'containerd field containerd.binaries',
    'containerd kind path',
    'containerd source /c',
    'containerd curl url = "/c"',
    'containerd shown /c',
    'containerd sha256 ',
    'runc field containerd.binaries',
    'runc kind url',
    'runc source https://user:secret@h/r-{arch}?a=1',
    'runc curl url = "https://user:secret@h/r-{arch}?a=1"',
    'runc shown https://***@h/r-{arch}?***',
    'runc sha256.arm64 aa',
    'runc sha256.amd64 bb',
    'runc sha256 missing',
  ].join('\n'),
};
const NO_CONTAINERD = { CONTAINERD_VERSION: '', CONTAINERD_NAMES: '', CONTAINERD_SOURCES: '' };
const CONTEXT = { rollout: 'uid', version: 'v1.36.3' };
const OWN = { ROLLOUT: 'uid', VERSION: 'v1.36.3' };

describe('a step', () => {
  test('stages each binary, with a hash for each processor and nothing secret in what is shown', () => {
    const script = scripts.stepScript({ ...CONTEXT, step: 'stage' }, scripts.stageBody(WHOLE));
    expect(valuesInSession(script, 'stage.sh')).toEqual({
      ...OWN,
      STEP: 'stage',
      ...SOURCES,
      ...CONTAINERD_VALUES,
    });
    const without = scripts.stageBody(UPGRADE).values;
    expect(without).toEqual({ ...SOURCES, ...NO_CONTAINERD });
  });

  test('replaces containerd last', () => {
    const body = scripts.containerdBody(CONTAINERD);
    const script = scripts.stepScript({ ...CONTEXT, step: 'containerd' }, body);
    expect(valuesInSession(script, 'containerd.sh')).toEqual({
      ...OWN,
      STEP: 'containerd',
      ...CONTAINERD_VALUES,
    });
  });

  test('replaces the kubelet, and kubectl where the host has it', () => {
    const body = scripts.kubeletBody({ kubectl: { path: '/k' } });
    const script = scripts.stepScript({ ...CONTEXT, step: 'kubelet' }, body);
    expect(valuesInSession(script, 'kubelet.sh')).toEqual({
      ...OWN,
      STEP: 'kubelet',
      KUBECTL: 'yes',
    });
    expect(scripts.kubeletBody({}).values).toEqual({ KUBECTL: '' });
  });

  test.each(['stage.sh', 'containerd.sh', 'kubeadm.sh', 'kubelet.sh', 'certificates.sh'])(
    '%s ends at once if it is done, and is done only after its work',
    (name) => {
      const lines = wholeScript(name).split('\n');
      const places = [`seen 'done' && exit 0`, 'note begun', `note 'done'`].map((line) =>
        lines.indexOf(line),
      );
      expect(places).not.toContain(-1);
      expect(places).toEqual(places.toSorted((a, b) => a - b));
    },
  );
});

describe('kubeadm', () => {
  test('upgrades the first control-plane host', () => {
    const ignorePreflightErrors = ['Swap', 'Mem'];
    const options = { ...WHOLE.kubeadm, etcdUpgrade: false, ignorePreflightErrors };
    const body = scripts.kubeadmBody('apply', 'controlPlane', options);
    const script = scripts.stepScript({ ...CONTEXT, step: 'kubeadm' }, body);
    expect(valuesInSession(script, 'kubeadm.sh')).toEqual({
      ...OWN,
      STEP: 'kubeadm',
      CONFIG: '/etc/c.yaml',
      PATCHES: "/etc/it's",
      IGNORED: 'Swap,Mem',
      CERTIFICATE_RENEWAL: '',
      ETCD_UPGRADE: 'false',
      ROLE: 'controlPlane',
      VERB: 'apply',
    });
  });

  test('upgrades a worker, with no flag that is empty', () => {
    const options = { ignorePreflightErrors: [], patches: '' };
    expect(scripts.kubeadmBody('node', 'worker', options).values).toEqual({
      CONFIG: '',
      PATCHES: '',
      IGNORED: '',
      CERTIFICATE_RENEWAL: '',
      ETCD_UPGRADE: '',
      ROLE: 'worker',
      VERB: 'node',
    });
  });
});

describe('the check before an upgrade', () => {
  test('gets the options, and all that is staged', () => {
    const script = scripts.prepareScript(WHOLE, CONTROLLER, true);
    expect(valuesInSession(script, 'prepare.sh')).toEqual({
      VERSION: 'v1.36.3',
      ...SOURCES,
      ...CONTAINERD_VALUES,
      CONFIG: '/etc/c.yaml',
      PATCHES: "/etc/it's",
      IGNORED: '',
      CHECK: 'apply',
      PLAN: 'yes',
    });
  });

  const CREATE_JOB = 'CreateJob';
  test.each<[string, Host, boolean, Partial<Upgrade>, readonly string[]]>([
    ['of a worker', WORKER, false, {}, ['node', '', '']],
    ['of a worker, whatever its version', WORKER, false, { version: 'v1.30.1' }, ['node', '', '']],
    [
      'of the first control-plane host, with what the upgrade would do',
      CONTROLLER,
      true,
      {},
      ['apply', 'yes', ''],
    ],
    [
      'of another one, whose Job has the same name as that of the first',
      CONTROLLER,
      false,
      { kubeadm: { ignorePreflightErrors: ['Swap'] } },
      ['apply', '', `Swap,${CREATE_JOB}`],
    ],
    [
      'where all is ignored anyway',
      CONTROLLER,
      false,
      { kubeadm: { ignorePreflightErrors: ['ALL'] } },
      ['apply', '', 'ALL'],
    ],
    [
      'where only a check with such a part in its name is ignored',
      CONTROLLER,
      false,
      { kubeadm: { ignorePreflightErrors: ['allThese', 'Install'] } },
      ['apply', '', `allThese,Install,${CREATE_JOB}`],
    ],
    [
      'with a configuration, beside which kubeadm takes no flag',
      CONTROLLER,
      false,
      { kubeadm: { config: '/c' } },
      ['apply', '', ''],
    ],
    ['of a kubeadm that has no phases', CONTROLLER, true, { version: 'v1.30.9' }, ['', '', '']],
    ['of a version that cannot be read', CONTROLLER, true, { version: 'latest' }, ['', '', '']],
  ])('%s', (_name, host, leads, more, expected) => {
    const script = scripts.prepareScript({ ...UPGRADE, ...more }, host, leads);
    const { CHECK, PLAN, IGNORED } = valuesInSession(script, 'prepare.sh');
    expect([CHECK, PLAN, IGNORED]).toEqual(expected);
  });

  test('kubeadm has phases as of v1.31', () => {
    expect(['v1.30.9', 'v1.31.0', 'latest'].map(scripts.hasPhases)).toEqual([false, true, false]);
  });
});

describe('the facts', () => {
  test('of a control-plane host with every option', () => {
    expect(valuesIn(scripts.probeScript(WHOLE, CONTROLLER, 1_500_400), 'probe.sh')).toEqual({
      ROLE: 'controlPlane',
      VERSION: 'v1.36.3',
      ...SOURCES,
      ...CONTAINERD_VALUES,
      CONFIG: '/etc/c.yaml',
      PATCHES: "/etc/it's",
      ENCRYPTS: 'yes',
      NOW: '1500',
    });
  });

  test('of a worker without options', () => {
    expect(valuesIn(scripts.probeScript(UPGRADE, WORKER, 0), 'probe.sh')).toEqual({
      ROLE: 'worker',
      VERSION: 'v1.36.3',
      ...SOURCES,
      ...NO_CONTAINERD,
      CONFIG: '',
      PATCHES: '',
      ENCRYPTS: '',
      NOW: '0',
    });
    expect(valuesIn(scripts.factsScript(WORKER), 'facts.sh')).toEqual({ ROLE: 'worker' });
  });

  test('of a configuration that may be missing', () => {
    const script = scripts.configurationScript({ config: '/etc/c.yaml' });
    expect(valuesIn(script, 'configuration.sh')).toEqual({ CONFIG: '/etc/c.yaml' });
    expect(scripts.configurationScript({})).toBe('');
  });
});

describe('the other scripts', () => {
  test('put containerd back', () => {
    const script = scripts.putBackScript('uid', CONTAINERD);
    expect(valuesInSession(script, 'containerd-back.sh')).toEqual({
      ROLLOUT: 'uid',
      NAMES: 'runc containerd',
    });
  });

  test('roll back', () => {
    const script = scripts.rollBackScript('uid');
    expect(valuesInSession(script, 'roll-back.sh')).toEqual({ ROLLOUT: 'uid' });
  });

  test('put the static pods back', () => {
    const script = scripts.staticPodsBackScript('uid');
    expect(valuesInSession(script, 'static-pods-back.sh')).toEqual({ ROLLOUT: 'uid' });
  });

  test('restore manifests, those of another kubeadm only when a person agreed', () => {
    expect(valuesInSession(scripts.repairScript(), 'repair.sh', '5')).toEqual({ BY_HAND: '' });
    expect(valuesInSession(scripts.repairScript('/b'), 'repair.sh', '5')).toEqual({
      BY_HAND: '/b',
    });
  });

  test('print what kubeadm would change', () => {
    expect(Object.keys(valuesIn(scripts.diffScript(UPGRADE, CONTROLLER), 'diff.sh'))).toEqual([
      'VERSION',
      'SOURCES',
    ]);
  });
});

test('no character of a URL begins another option of curl, nor another line of the sources', () => {
  const url = 'https://h/"a\\b\nc\rd\te\vf';
  const { binaries } = UPGRADE;
  const kubeadm = { url, sha256: 'aa' };
  const script = scripts.diffScript({ ...UPGRADE, binaries: { ...binaries, kubeadm } }, CONTROLLER);
  const lines = valuesIn(script, 'diff.sh')['SOURCES']?.split('\n') ?? [];
  expect(lines.map((line) => line.split(' ')[1])).toEqual([
    'field',
    'kind',
    'source',
    'curl',
    'shown',
    'sha256',
  ]);
  // The shell removes one of two backslashes, and curl removes another.
  const doubled = String.raw`kubeadm curl url = "https://h/\\"a\\\\b\\nc\\rd\\te\\vf"`;
  expect(lines).toContain(doubled);
});

test('each binary of a host replaces the one for all hosts, and names its field', () => {
  const forAll = { kubeadm: { path: '/a' }, kubelet: { path: '/b' }, kubectl: { path: '/c' } };
  const own = { path: '/own' };
  const field = 'hosts[cp1].binaries';
  const binaries = (of?: Host['binaries']) =>
    scripts.binariesFor({ binaries: forAll }, { name: 'cp1', ...(of ? { binaries: of } : {}) });
  expect(binaries()).toEqual(forAll);
  for (const name of ['kubeadm', 'kubelet', 'kubectl'] as const)
    expect(binaries({ [name]: own })).toEqual({ ...forAll, [name]: { ...own, field } });
});
