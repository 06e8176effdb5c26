/** Tests that shell code in the fields of a manifest is only text on the host: it runs nothing and breaks no script. */
import { existsSync, readdirSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { array, assert, asyncProperty, constantFrom, oneof, record, string } from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  restoreFactsScript,
  restoreScripts,
} from '../../src/dialects/kubeadm/command/restore-etcd.ts';
import {
  filledScript,
  inputsOf,
  quoted,
  wholeScript,
} from '../../src/dialects/kubeadm/host/filled-script.ts';
import type { Binary } from '../../src/dialects/kubeadm/host/host.ts';
import {
  containerdBody,
  diffScript,
  kubeadmBody,
  kubeletBody,
  prepareScript,
  probeScript,
  putBackScript,
  repairScript,
  type StepBody,
  stageBody,
  stepScript,
} from '../../src/dialects/kubeadm/host/scripts.ts';
import { parseManifest } from '../../src/dialects/kubeadm/plan/manifest.ts';
import { printableUrl } from '../../src/util/printable-url.ts';
import { run } from '../../tools/controlplane/run.ts';
import { WHOLE } from '../support/whole.ts';

const NOTE = 'printf "%s\\0" "$@" >>"$REFIT_ROOT/asked"';
/** The program in the package prints the requested version, so that the steps continue to the end. */
const PRINTS_VERSION = `printf '#!/bin/sh\ncat "$REFIT_ROOT/version"\n'`;
const RPM = {
  'dpkg-query': 'exit 1',
  // The binary belongs to a package with the name of the binary. The package has another version.
  rpm: `case $1 in -qf) for file; do :; done; echo "\${file##*/}" ;; -U) ${NOTE} ;; *) exit 1 ;; esac`,
  rpm2cpio: 'exit 0',
  cpio: PRINTS_VERSION,
};
const DNF = `${NOTE}; case $PWD in *.packages.new) : >a.rpm ;; esac; echo kubelet-1`;
/** The programs of a host whose binaries are packages, for each package manager. */
const MANAGERS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'apt-get': {
    'dpkg-query': 'for file; do :; done; echo "${file##*/}: $file"',
    'apt-get': `${NOTE}; case $PWD in *.packages.new) : >a.deb ;; esac`,
    'dpkg-deb': 'exit 0',
    tar: PRINTS_VERSION,
    dpkg: 'exit 0',
    'apt-mark': 'exit 0',
  },
  dnf: { ...RPM, dnf: DNF },
  dnf5: { ...RPM, dnf5: DNF },
  zypper: { ...RPM, zypper: `${NOTE}; case $PWD in *.packages.new) mkdir r && : >r/a.rpm ;; esac` },
};

let root = '';
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'refit-injected-'));
  const tools: Record<string, string> = {
    // These programs replace the programs of this machine, so that no script waits and nothing on this machine changes.
    kubeadm: 'exit 0',
    kubelet: 'exit 0',
    containerd: 'exit 0',
    systemctl: 'exit 0',
    etcdutl: 'exit 0',
    curl: 'printf "%s\\n" "$@" >"$REFIT_ROOT/curl"; cat >"$REFIT_ROOT/configuration"; exit 22',
  };
  for (const folder of ['run', 'usr/bin']) await mkdir(join(root, folder), { recursive: true });
  for (const [name, body] of Object.entries(tools))
    await writeFile(join(root, 'usr/bin', name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  for (const [manager, programs] of Object.entries(MANAGERS)) {
    await mkdir(join(root, manager));
    for (const [name, body] of Object.entries(programs))
      await writeFile(join(root, manager, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  }
  await symlink('dnf5', join(root, 'dnf5/dnf'));
  await mkdir(join(root, 'etc/kubernetes/manifests'), { recursive: true });
  await writeFile(
    join(root, 'etc/kubernetes/manifests/etcd.yaml'),
    '    - --data-dir=/data\n    - --name=a\n',
  );
});
afterAll(async () => await rm(root, { recursive: true }));

/** The name of the file that an attack creates if a script runs a value as shell code. */
const CANARY = 'canary';
const ATTACKS = [
  `$(touch $REFIT_ROOT/${CANARY})`,
  `\`touch $REFIT_ROOT/${CANARY}\``,
  `';touch $REFIT_ROOT/${CANARY};'`,
  `";touch $REFIT_ROOT/${CANARY};"`,
  `'\\'';touch $REFIT_ROOT/${CANARY};'\\''`,
  `\ntouch $REFIT_ROOT/${CANARY}\n`,
  `|touch $REFIT_ROOT/${CANARY}&`,
  `\nEOF\ntouch $REFIT_ROOT/${CANARY}\n`,
  '$((1/0))',
  '${X?no}',
  '-o',
  '\\',
  '"',
  "'",
  '%s%n',
  '*',
  '#',
];
const EVERY_ATTACK = ATTACKS.join('');
const MANIFEST = parseManifest(
  '{version: v1.36.3, hosts: [{name: a, role: controlPlane}], binaries: {kubeadm: {path: /a}, kubelet: {path: /b}}}',
  'm.yaml',
);
/** The texts contain no NUL byte, because `quoted` refuses it. */
const hostile = array(oneof(constantFrom(...ATTACKS), string({ unit: 'binary' })), {
  maxLength: 6,
}).map((parts) => parts.join('').replaceAll('\0', ''));
const binary = oneof(
  record({ path: hostile.map((text) => `/${text}`), sha256: hostile }),
  record({ url: hostile, sha256: hostile }),
);
const values = record({
  rollout: hostile,
  version: hostile,
  kubeadm: binary,
  kubelet: binary,
  byHand: hostile,
  manager: constantFrom('', ...Object.keys(MANAGERS)),
});
type Values = {
  rollout: string;
  version: string;
  kubeadm: Binary;
  kubelet: Binary;
  byHand: string;
  manager: string;
};

/** Returns values that all contain every attack. */
function attackedBy(own: Binary, manager: string): Values {
  return {
    rollout: EVERY_ATTACK,
    version: EVERY_ATTACK,
    kubeadm: own,
    kubelet: own,
    byHand: EVERY_ATTACK,
    manager,
  };
}

/** Runs the script on the host. `manager` is the manager of the packages to which the binaries of the host belong. */
async function onHost(
  script: string,
  manager = '',
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const path = [join(root, manager), join(root, 'usr/bin'), process.env['PATH']];
  const environment = { REFIT_ROOT: root, PATH: path.join(':') };
  return await run('sh', ['-s'], { environment, input: script });
}

function bodiesOf({ version, kubeadm, kubelet, byHand }: Values): StepBody[] {
  return [
    stageBody({ binaries: { kubeadm, kubelet, kubectl: kubelet } }),
    containerdBody({ version, binaries: { containerd: kubelet } }),
    kubeadmBody('apply', 'controlPlane', { patches: byHand, ignorePreflightErrors: [byHand] }),
    kubeadmBody('node', 'worker', { config: byHand }),
    kubeletBody({ kubectl: kubelet }),
  ];
}

async function expectHarmless(script: string, manager?: string): Promise<string> {
  const { stdout, stderr } = await onHost(script, manager);
  expect(stderr).toBe('');
  expect(stdout).not.toMatch(/sh: \d+: .*([Ss]yntax error|[Uu]nterminated|not found)/);
  expect(existsSync(join(root, CANARY))).toBe(false);
  return stdout;
}

test('hostile values in a manifest run no code in the scripts and leave their syntax intact', async () => {
  const property = asyncProperty(values, async (given) => {
    const { rollout, version, byHand } = given;
    await expectHarmless(repairScript(byHand));
    await writeFile(join(root, 'version'), version);
    const { kubeadm, kubelet, manager } = given;
    const [host] = MANIFEST.hosts;
    const containerd = {
      version,
      binaries: { containerd: kubelet, 'containerd-shim-runc-v2': kubeadm, runc: kubeadm },
    };
    const own = {
      version,
      binaries: { kubeadm, kubelet },
      containerd,
      kubeadm: { patches: byHand },
    };
    const manifest = { ...MANIFEST, ...own };
    await expectHarmless(putBackScript(rollout, containerd));
    if (host) await expectHarmless(probeScript(manifest, host, 0), manager);
    if (host) await expectHarmless(prepareScript(manifest, host, false), manager);
    if (host) await expectHarmless(diffScript(manifest, host));
    const special = { name: byHand, role: 'worker', binaries: { kubeadm, kubelet } } as const;
    await expectHarmless(probeScript(manifest, special, 0), manager);
    const restore = { snapshot: byHand, stamp: version };
    await expectHarmless(restoreFactsScript(restore));
    for (const script of Object.values(restoreScripts(restore, rollout)))
      await expectHarmless(script);
    for (const body of bodiesOf(given))
      await expectHarmless(stepScript({ step: 'stage', rollout, version }, body), manager);
  });
  // The first two runs contain every attack. Does not search for a smaller example after a failure, because this would
  // take hundreds of runs of all scripts.
  const examples: [Values][] = [
    [attackedBy({ path: `/${EVERY_ATTACK}`, sha256: EVERY_ATTACK }, 'apt-get')],
    [attackedBy({ url: EVERY_ATTACK, sha256: EVERY_ATTACK }, 'dnf')],
  ];
  await assert(property, { numRuns: WHOLE ? 30 : 3, endOnFailure: true, examples });
}, 180_000);

test('any value that a header declares reaches the script as it is', async () => {
  const names = readdirSync('src/dialects/kubeadm/host/scripts').filter(
    (name) => name.endsWith('.sh') && inputsOf(name).length > 0,
  );
  expect(names).toContain('detached.sh');
  for (const name of names) {
    const keys = inputsOf(name).map((input) => input.name);
    const attacks = array(hostile, { minLength: keys.length, maxLength: keys.length });
    const property = asyncProperty(attacks, async (texts) => {
      const values = Object.fromEntries(keys.map((key, index) => [key, texts[index] ?? '']));
      const filled = filledScript(name, values);
      const own = wholeScript(name);
      expect(filled.endsWith(own)).toBe(true);
      const prints = keys.map((key) => `printf '%s\\0' "$${key}"\n`).join('');
      const { stdout, stderr } = await onHost(`${filled.slice(0, -own.length)}${prints}`);
      expect(stderr).toBe('');
      expect(stdout.split('\0').slice(0, -1)).toEqual(texts);
      expect(existsSync(join(root, CANARY))).toBe(false);
    });
    const examples: [string[]][] = [[keys.map(() => EVERY_ATTACK)]];
    await assert(property, { numRuns: WHOLE ? 30 : 2, endOnFailure: true, examples });
  }
}, 180_000);

/** How each manager names a package with its version. */
const NAMES: readonly (readonly [string, (version: string) => string])[] = [
  ['apt-get', (version) => `kubelet=${version}-*`],
  ['dnf', (version) => `kubelet-${version}`],
  ['dnf5', (version) => `kubelet-${version}`],
  ['zypper', (version) => `kubelet=${version}`],
];

test.each(NAMES.map((name, index) => [...name, index] as const))(
  'any version of a package reaches %s as one argument',
  async (manager, named, index) => {
    const [host] = MANIFEST.hosts;
    // Each attack is tested with at least one manager. Without `WHOLE`, each manager is tested with every fourth
    // attack.
    for (const attack of ATTACKS.filter((_, at) => WHOLE || at % NAMES.length === index)) {
      // The version ends with a dot, because a shell removes line breaks at the end of an output. So no program could
      // report a version that ends with a line break.
      const version = `${attack}.`;
      const context = { rollout: 'packages', version: `v${version}` };
      await rm(join(root, 'var'), { recursive: true, force: true });
      await writeFile(join(root, 'version'), context.version);
      const asked: string[][] = [];
      for (const script of [
        host ? probeScript({ ...MANIFEST, version: context.version }, host, 0) : '',
        stepScript({ ...context, step: 'stage' }, stageBody(MANIFEST)),
        stepScript({ ...context, step: 'kubeadm' }, kubeadmBody('node', 'worker', {})),
        stepScript({ ...context, step: 'kubelet' }, kubeletBody({})),
      ]) {
        await writeFile(join(root, 'asked'), '');
        await expectHarmless(script, manager);
        asked.push((await readFile(join(root, 'asked'), 'utf8')).split('\0'));
      }
      expect(asked[0]).toContain(named(version));
      expect(asked[1]).toContain(named(version));
      expect(asked[3]).toContain(
        join(
          root,
          `var/lib/refit/staged/kubelet.packages/a.${manager === 'apt-get' ? 'deb' : 'rpm'}`,
        ),
      );
    }
  },
  180_000,
);

test.each(ATTACKS)(
  'the address %j reaches the download as one line of its configuration, and the message as text',
  async (attack) => {
    const source = { url: `https://example.com/${attack}`, sha256: 'ab'.repeat(32) };
    const script = stepScript(
      { step: 'stage', rollout: 'r', version: 'v1' },
      stageBody({ binaries: { kubeadm: source, kubelet: source } }),
    );
    const stdout = await expectHarmless(script);
    const found = await readFile(join(root, 'curl'), 'utf8');
    expect(found.endsWith('-K\n-\n')).toBe(true);
    const [line = '', ...others] = (await readFile(join(root, 'configuration'), 'utf8')).split(
      '\n',
    );
    expect(others).toEqual(['']);
    expect(JSON.parse(line.replace(/^url = /, ''))).toBe(source.url);
    // curl must end a stalled download, because the step keeps the lock of the host.
    expect(found).toContain('--speed-time\n60\n');
    // Only the end of the log of the step is returned.
    expect(stdout).toContain(printableUrl(source.url).split('\n').at(-1));
  },
);

test.each([
  ['path', { path: '/k0s\ntouch x' }],
  ['sha256 of a path', { path: '/k0s', sha256: `${'ab'.repeat(32)}  /dev/null\n` }],
])('a manifest with a line break in the %s is refused', (_field, kubeadm) => {
  const manifest = {
    version: 'v1.36.3',
    hosts: [{ name: 'a', role: 'controlPlane' }],
    binaries: { kubeadm, kubelet: kubeadm },
  };
  expect(() => parseManifest(JSON.stringify(manifest), 'm.yaml')).toThrow(
    'm.yaml: binaries.kubeadm',
  );
});

test('a NUL byte, which no shell can hold, is refused', () => {
  expect(() => quoted('a\0b')).toThrow('contains a NUL byte');
});
