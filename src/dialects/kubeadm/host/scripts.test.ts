/** Proves in which order the parts of each script come, and that every value is one word of it. The agent's tests run them. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Host, Upgrade } from './host.ts';
import { scriptFile } from './script-file.ts';
import * as scripts from './scripts.ts';

const NAMES = readdirSync(join(import.meta.dirname, 'scripts')).filter((name) =>
  name.endsWith('.sh'),
);
/** The longest first, in case that one file begins like another. */
const FILES = NAMES.map((name) => ({ name, text: scriptFile(name) })).toSorted(
  (a, b) => b.text.length - a.text.length,
);

/** The lines of a script, with the name of each file of `scripts/` in place of its text. */
function linesOf(script: string): string[] {
  let short = script;
  for (const { name, text } of FILES) short = short.replaceAll(text, () => `<${name}>\n`);
  return short.split('\n').filter((line) => line !== '');
}

/** The parts alone, without what is assigned for each binary. */
function partsOf(lines: readonly string[]): string[] {
  return lines.filter((line) => !/\b(KIND|SOURCE|CURL|SHOWN|SHA256)=|^(case|esac|;;)/.test(line));
}

/** The lines of a script that runs in a session of its own. */
function bodyOf(script: string): string[] {
  const [, body = '', rest = ''] = /^BODY='(.*)'\n(BUSY=.*)$/s.exec(script) ?? [];
  const [settings, wait, ...others] = linesOf(rest);
  expect([settings, ...others]).toEqual(["BUSY='75'", '<detached.sh>']);
  return [...linesOf(body.replaceAll(`'\\''`, `'`)), `waits ${wait?.replaceAll(/\D/g, '')}`];
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
const STEP = { rollout: 'uid', step: 'kubelet', version: 'v1.36.3' } as const;

describe('a step', () => {
  test('ends at once if it is done, and is done only after its body', () => {
    const script = scripts.stepScript(STEP, { before: 'first\n', body: 'work', after: 'last' });
    expect(bodyOf(script)).toMatchInlineSnapshot(`
      [
        "ROLLOUT='uid'",
        "STEP='kubelet'",
        "VERSION='v1.36.3'",
        "<prelude.sh>",
        "<trusted.sh>",
        "<packages.sh>",
        "<journal.sh>",
        "seen done && exit 0",
        "first",
        "note begun",
        "work",
        "note done",
        "last",
        "waits 1800",
      ]
    `);
  });

  test('may have nothing before and after its body', () => {
    const lines = bodyOf(scripts.stepScript(STEP, { body: 'work' }));
    const own = ['seen done && exit 0', 'note begun', 'work', 'note done', 'waits 1800'];
    expect(lines.slice(-own.length - 1)).toEqual(['<journal.sh>', ...own]);
  });

  test('stages each binary, with a hash for each processor and nothing secret in what is shown', () => {
    expect(linesOf(scripts.stageBody(WHOLE).body)).toMatchInlineSnapshot(`
      [
        "mkdir -p "$D/staged"",
        "<processor.sh>",
        "<binaries.sh>",
        "KIND=path",
        "SOURCE='/a'",
        "CURL='url = "/a"'",
        "SHOWN='/a'",
        "SHA256='abc'",
        "fetch kubeadm",
        "KIND=path",
        "SOURCE='/b'",
        "CURL='url = "/b"'",
        "SHOWN='/b'",
        "SHA256=''",
        "fetch kubelet",
        "(VERSION='v2.3.3' FIELD=containerd.binaries NAMES='runc containerd'",
        "source_of() { case $1 in",
        "containerd) KIND=path",
        "SOURCE='/c'",
        "CURL='url = "/c"'",
        "SHOWN='/c'",
        "SHA256=''",
        ";;",
        "runc) KIND=url",
        "SOURCE='https://user:secret@h/r-'"$ARCH"'?a=1'",
        "CURL='url = "https://user:secret@h/r-'"$ARCH"'?a=1"'",
        "SHOWN='https://***@h/r-'"$ARCH"'?***'",
        "case $ARCH in",
        "'arm64') SHA256='aa' ;;",
        "'amd64') SHA256='bb' ;;",
        "*) SHA256=missing ;;",
        "esac",
        ";;",
        "esac; }",
        "<containerd-binaries.sh>",
        "fetch_containerd)",
      ]
    `);
  });

  test('replaces containerd last', () => {
    const { before = '', body } = scripts.containerdBody(CONTAINERD);
    expect(linesOf(before)).toMatchInlineSnapshot(`
      [
        "<keep.sh>",
        "<keep-configuration.sh>",
      ]
    `);
    expect(partsOf(linesOf(body))).toMatchInlineSnapshot(`
      [
        "VERSION='v2.3.3' NAMES='runc containerd'",
        "mkdir -p "$D/staged"",
        "<processor.sh>",
        "<binaries.sh>",
        "stage() {",
        "(VERSION='v2.3.3' FIELD=containerd.binaries NAMES='runc containerd'",
        "source_of() { case $1 in",
        "<containerd-binaries.sh>",
        "fetch_containerd)",
        "}",
        "<containerd.sh>",
      ]
    `);
  });

  test('replaces the kubelet, and kubectl where the host has it', () => {
    const { before = '', body, after } = scripts.kubeletBody({ kubectl: { path: '/k' } });
    expect(linesOf(before)).toEqual(['<keep.sh>', '<keep-configuration.sh>']);
    expect(linesOf(body)).toMatchInlineSnapshot(`
      [
        "if command -v kubectl >/dev/null; then install_from staged kubectl; fi",
        "keep kubelet "$(file_of kubelet)"",
        "install_from staged kubelet",
        "systemctl daemon-reload",
        "systemctl restart kubelet",
      ]
    `);
    expect(after).toBe('rm -rf "$D/staged" "$D/previous/.containerd"');
    expect(scripts.kubeletBody({}).body).not.toContain('kubectl');
  });
});

describe('kubeadm', () => {
  test('upgrades the first control-plane host', () => {
    const options = {
      ...WHOLE.kubeadm,
      etcdUpgrade: false,
      ignorePreflightErrors: ['Swap', 'Mem'],
    };
    const { before = '', body } = scripts.kubeadmBody('apply', 'controlPlane', options);
    expect(linesOf(before)).toMatchInlineSnapshot(`
      [
        "problem=$(untrusted_option patches '/etc/it'\\''s')",
        "[ -z "$problem" ] || fail "$problem"",
        "problem=$(untrusted_option config '/etc/c.yaml')",
        "[ -z "$problem" ] || fail "$problem"",
        "<backups.sh>",
        "<restore-manifests.sh>",
        "<record-run.sh>",
        "<keep.sh>",
        "<keep-configuration.sh>",
      ]
    `);
    expect(linesOf(body)).toMatchInlineSnapshot(`
      [
        "keep kubeadm "$(file_of kubeadm)"",
        "install_from staged kubeadm",
        "kubeadm upgrade apply --yes "$VERSION" '--config=/etc/c.yaml' '--patches=/etc/it'\\''s' '--etcd-upgrade=false' '--ignore-preflight-errors=Swap,Mem' || { code=$?; [ "$code" -gt 128 ] || note failed; exit "$code"; }",
        "<remove-copies.sh>",
      ]
    `);
  });

  test('upgrades a worker, which has no manifests to restore', () => {
    const { before = '', body } = scripts.kubeadmBody('node', 'worker', {});
    expect(linesOf(before)).toEqual(['<keep.sh>', '<keep-configuration.sh>']);
    expect(linesOf(body)).toMatchInlineSnapshot(`
      [
        "keep kubeadm "$(file_of kubeadm)"",
        "install_from staged kubeadm",
        "kubeadm upgrade node || { code=$?; [ "$code" -gt 128 ] || note failed; exit "$code"; }",
        "<remove-copies.sh>",
        "<kubelet-flags.sh>",
      ]
    `);
  });

  test('gets no flag that is empty', () => {
    const options = { ignorePreflightErrors: [], patches: '' };
    const [line] = linesOf(scripts.kubeadmBody('node', 'worker', options).body).slice(-3, -2);
    expect(line).toMatch(/^kubeadm upgrade node \|\|/);
  });
});

describe('the check before an upgrade', () => {
  const preflight = (host: Host, leads: boolean, more: Partial<Upgrade> = {}): string[] =>
    bodyOf(scripts.prepareScript({ ...UPGRADE, ...more }, host, leads)).filter((line) =>
      /staged\/kubeadm"|upgrade-plan/.test(line),
    );

  test('refuses files that others may change before it stages anything', () => {
    expect(partsOf(bodyOf(scripts.prepareScript(WHOLE, CONTROLLER, true)))).toMatchInlineSnapshot(`
      [
        "VERSION='v1.36.3'",
        "<prelude.sh>",
        "<trusted.sh>",
        "<packages.sh>",
        "<journal.sh>",
        "problem=$(untrusted_option patches '/etc/it'\\''s')",
        "[ -z "$problem" ] || fail "$problem"",
        "problem=$(untrusted_option config '/etc/c.yaml')",
        "[ -z "$problem" ] || fail "$problem"",
        "mkdir -p "$D/staged"",
        "<processor.sh>",
        "<binaries.sh>",
        "fetch kubeadm",
        "fetch kubelet",
        "(VERSION='v2.3.3' FIELD=containerd.binaries NAMES='runc containerd'",
        "source_of() { case $1 in",
        "<containerd-binaries.sh>",
        "fetch_containerd)",
        ""$D/staged/kubeadm" upgrade apply phase preflight "$VERSION" --yes '--config=/etc/c.yaml'",
        "<upgrade-plan.sh>",
        "waits 1800",
      ]
    `);
  });

  test.each<[string, Host, boolean, Partial<Upgrade>, readonly string[]]>([
    ['of a worker', WORKER, false, {}, ['"$D/staged/kubeadm" upgrade node phase preflight']],
    [
      'of a worker, whatever its version',
      WORKER,
      false,
      { version: 'v1.30.1' },
      ['"$D/staged/kubeadm" upgrade node phase preflight'],
    ],
    [
      'of the first control-plane host, with what the upgrade would do',
      CONTROLLER,
      true,
      {},
      ['"$D/staged/kubeadm" upgrade apply phase preflight "$VERSION" --yes', '<upgrade-plan.sh>'],
    ],
    [
      'of another one, whose Job has the same name as that of the first',
      CONTROLLER,
      false,
      { kubeadm: { ignorePreflightErrors: ['Swap'] } },
      [
        `"$D/staged/kubeadm" upgrade apply phase preflight "$VERSION" --yes '--ignore-preflight-errors=Swap,CreateJob'`,
      ],
    ],
    [
      'where all is ignored anyway',
      CONTROLLER,
      false,
      { kubeadm: { ignorePreflightErrors: ['ALL'] } },
      [
        `"$D/staged/kubeadm" upgrade apply phase preflight "$VERSION" --yes '--ignore-preflight-errors=ALL'`,
      ],
    ],
    [
      'where only a check with such a part in its name is ignored',
      CONTROLLER,
      false,
      { kubeadm: { ignorePreflightErrors: ['allThese', 'Install'] } },
      [
        `"$D/staged/kubeadm" upgrade apply phase preflight "$VERSION" --yes '--ignore-preflight-errors=allThese,Install,CreateJob'`,
      ],
    ],
    [
      'with a configuration, beside which kubeadm takes no flag',
      CONTROLLER,
      false,
      { kubeadm: { config: '/c' } },
      [`"$D/staged/kubeadm" upgrade apply phase preflight "$VERSION" --yes '--config=/c'`],
    ],
    ['of a kubeadm that has no phases', CONTROLLER, true, { version: 'v1.30.9' }, []],
    ['of a version that cannot be read', CONTROLLER, true, { version: 'latest' }, []],
  ])('%s', (_name, host, leads, more, expected) => {
    expect(preflight(host, leads, more)).toEqual(expected);
  });

  test('kubeadm has phases as of v1.31', () => {
    expect(['v1.30.9', 'v1.31.0', 'latest'].map(scripts.hasPhases)).toEqual([false, true, false]);
  });
});

describe('the facts', () => {
  test('of a control-plane host with every option', () => {
    expect(
      partsOf(linesOf(scripts.probeScript(WHOLE, CONTROLLER, 1_500_400))),
    ).toMatchInlineSnapshot(`
      [
        "VERSION='v1.36.3'",
        "<prelude.sh>",
        "<trusted.sh>",
        "<packages.sh>",
        "<kubelet-process.sh>",
        "<runtime.sh>",
        "<processor.sh>",
        "<binaries.sh>",
        "{ <in-path.sh>",
        "probe kubeadm",
        "probe kubelet",
        "(VERSION='v2.3.3' FIELD=containerd.binaries NAMES='runc containerd'",
        "source_of() { case $1 in",
        "<containerd-binaries.sh>",
        "probe_containerd)",
        "untrusted_option patches '/etc/it'\\''s'",
        "untrusted_option config '/etc/c.yaml'",
        "command -v openssl >/dev/null || echo "no openssl in PATH: it encrypts the snapshot of etcd"",
        "STAGED=524288",
        "<room.sh>",
        "} | sed -E '/^(warn|stopped)=/!s/^/hard=/'",
        "<listens.sh>",
        "NEED=1048576",
        "NOW=1500",
        "PATCHED='/etc/it'\\''s''/etc/c.yaml'",
        "CONFIG='/etc/c.yaml'",
        "<host.sh>",
        "<cni.sh>",
        "<facts.sh>",
        "<kubelet-facts.sh>",
        "<backups.sh>",
        "<missing-manifests.sh>",
      ]
    `);
  });

  test('of a worker without options', () => {
    expect(partsOf(linesOf(scripts.probeScript(UPGRADE, WORKER, 0)))).toMatchInlineSnapshot(`
      [
        "VERSION='v1.36.3'",
        "<prelude.sh>",
        "<trusted.sh>",
        "<packages.sh>",
        "<kubelet-process.sh>",
        "<runtime.sh>",
        "<processor.sh>",
        "<binaries.sh>",
        "{ <in-path.sh>",
        "probe kubeadm",
        "probe kubelet",
        "STAGED=262144",
        "<room.sh>",
        "} | sed -E '/^(warn|stopped)=/!s/^/hard=/'",
        "<listens.sh>",
        "NEED=262144",
        "NOW=0",
        "PATCHED=",
        "CONFIG=''",
        "<host.sh>",
        "<cni.sh>",
        "<facts.sh>",
        "<kubelet-facts.sh>",
      ]
    `);
  });

  test('a worker needs no openssl, nor does a control-plane host without a certificate', () => {
    expect(scripts.probeScript(WHOLE, WORKER, 0)).not.toContain('no openssl');
    expect(scripts.probeScript(UPGRADE, CONTROLLER, 0)).not.toContain('no openssl');
  });

  test('of a configuration that may be missing', () => {
    expect(linesOf(scripts.configurationScript({ config: '/etc/c.yaml' }))).toMatchInlineSnapshot(`
      [
        "<prelude.sh>",
        "<trusted.sh>",
        "<packages.sh>",
        "[ ! -e '/etc/c.yaml' ] || untrusted_option config '/etc/c.yaml'",
      ]
    `);
    expect(scripts.configurationScript({})).toBe('');
  });
});

describe('the other scripts', () => {
  test('put containerd back', () => {
    expect(bodyOf(scripts.putBackScript('uid', CONTAINERD))).toMatchInlineSnapshot(`
      [
        "ROLLOUT='uid' NAMES='runc containerd'",
        "<prelude.sh>",
        "<trusted.sh>",
        "<packages.sh>",
        "<journal.sh>",
        "<keep.sh>",
        "<containerd-back.sh>",
        "waits 1800",
      ]
    `);
  });

  test('roll back', () => {
    expect(bodyOf(scripts.rollBackScript('uid'))).toMatchInlineSnapshot(`
      [
        "ROLLOUT='uid'",
        "<prelude.sh>",
        "<trusted.sh>",
        "<packages.sh>",
        "<journal.sh>",
        "<keep.sh>",
        "<roll-back.sh>",
        "waits 1800",
      ]
    `);
  });

  test('restore manifests, those of another kubeadm only when a person agreed', () => {
    expect(bodyOf(scripts.repairScript())).toMatchInlineSnapshot(`
      [
        "<prelude.sh>",
        "<trusted.sh>",
        "<packages.sh>",
        "<backups.sh>",
        "<restore-manifests.sh>",
        "waits 5",
      ]
    `);
    expect(bodyOf(scripts.repairScript("it's"))[0]).toMatch(/^BY_HAND='it'/);
  });

  test('print what kubeadm would change', () => {
    expect(partsOf(linesOf(scripts.diffScript(UPGRADE, CONTROLLER)))).toMatchInlineSnapshot(`
      [
        "VERSION='v1.36.3'",
        "<prelude.sh>",
        "<trusted.sh>",
        "<packages.sh>",
        "<processor.sh>",
        "<binaries.sh>",
        "<diff.sh>",
      ]
    `);
  });
});

test('no character of a URL begins another option of curl', () => {
  const url = 'https://h/"a\\b\nc\rd\te\vf';
  const kubeadm = { url, sha256: 'aa' };
  const { binaries } = UPGRADE;
  const script = scripts.diffScript({ ...UPGRADE, binaries: { ...binaries, kubeadm } }, CONTROLLER);
  expect(script).toContain(String.raw`CURL='url = "https://h/\"a\\b\nc\rd\te\vf"'`);
  expect(script).toContain('KIND=url\n');
});
