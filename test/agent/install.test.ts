/**
 * Tests, on hosts with real systemd and real OpenRC, that the agent installs itself, upgrades the node, and uninstalls
 * itself.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { leftOut } from '../support/left-out.ts';
import { buildOneFile } from '../support/one-file.ts';
import { whyNoContainer } from '../testenv/container.ts';
import { ownImage } from '../testenv/own-image.ts';
import type { PodImage } from './install/pod.ts';
import type { Seen } from './install/seen.ts';
import { runInJail, whyNoOpenRc } from './openrc/jail.ts';
import { bootInJail, whyNoSystemd } from './systemd/jail.ts';

const INSIDE = join(import.meta.dirname, 'install', 'inside.ts');
const TIMEOUT_MS = 600_000;

interface Manager {
  readonly name: string;
  readonly service: string;
  readonly why: string | undefined;
  /** The reason why no pod can run in the jail; undefined if pods can run. */
  readonly whyNoPod: string | undefined;
  /** Runs the program in the jail. Returns its output if it failed. */
  readonly run: (program: readonly string[], exchange: string) => Promise<string>;
}

const MANAGERS: readonly Manager[] = [
  {
    name: 'systemd',
    service: 'systemd unit refit-agent.service',
    why: await whyNoSystemd(),
    whyNoPod: whyNoContainer(),
    async run(program, exchange) {
      const { status, output } = await bootInJail(program, exchange, TIMEOUT_MS);
      return status === 0 ? '' : `exit code ${status}\n${output}`;
    },
  },
  {
    name: 'openrc',
    service: 'OpenRC service refit-agent',
    why: whyNoOpenRc(),
    whyNoPod: 'its jail is a chroot, and nsenter leaves that',
    run(program, exchange) {
      const { status, stdout, stderr } = runInJail(program, TIMEOUT_MS, exchange);
      return Promise.resolve(status === 0 ? '' : `exit code ${status}\n${stdout}${stderr}`);
    },
  },
];

let directory = '';
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'refit-install-'));
  const binary = await buildOneFile(directory);
  if (whyNoContainer() === undefined) await unpackImage(binary);
});

/** Unpacks the image that the test of the pod runs. */
async function unpackImage(binary: string): Promise<void> {
  const folder = join(directory, 'image');
  mkdirSync(folder);
  const { root, config } = await ownImage(folder, binary);
  writeFileSync(
    join(directory, 'image.json'),
    JSON.stringify({ root, environment: config.Env } satisfies PodImage),
  );
}
afterAll(() => rmSync(directory, { recursive: true }));

for (const manager of MANAGERS) {
  if (manager.why === undefined) describe(`under ${manager.name}`, () => suite(manager));
  else leftOut(`under ${manager.name}`, manager.why);
}

function suite({ name, service, run, whyNoPod }: Manager): void {
  let seen: Seen;
  beforeAll(async () => {
    const pod = whyNoPod === undefined ? ['pod'] : [];
    expect(await run([process.execPath, INSIDE, name, directory, ...pod], directory)).toBe('');
    const found = JSON.parse(readFileSync(join(directory, 'seen.json'), 'utf8')) as Seen & {
      error?: string;
    };
    expect(found.error).toBeUndefined();
    seen = found;
  });

  test('without k0s nothing is installed', () => {
    expect(seen.tooEarly).toMatch(/^REFIT_INSTALL: no k0s runs on this host/);
  });

  test('a kubeconfig that others may write is refused: it could name commands', () => {
    expect(seen.distrusted).toMatch(
      /^REFIT_FILE: cannot use the kubeconfig: others may write to \/var\/lib\/k0s\/kubelet\.conf/,
    );
  });

  test('a k0s whose status socket others could replace is named, with the reason', () => {
    expect(seen.unasked).toMatch(
      /^REFIT_INSTALL: cannot ask k0s: PID \d+: others may write to \/run\/k0s; run "chmod go-w \/run\/k0s" \(fix that/,
    );
  });

  test('files of others stay: install and uninstall refuse before they change anything', () => {
    const file =
      name === 'systemd' ? '/etc/systemd/system/refit-agent.service' : '/etc/init.d/refit-agent';
    const dropIn = name === 'systemd' ? `${file}.d/` : '/etc/conf.d/refit-agent';
    const { refused, kept, masked, left, changed } = seen.foreign;
    const inTheWay =
      'REFIT_INSTALL: these files exist already, and refit install did not create them: ';
    const hint = `(move these files away, put settings of the service into ${dropIn}, and run this command again)\nexit code 1\n`;
    expect(refused).toBe(
      `${inTheWay}${file}, /etc/refit/agent.kubeconfig, /usr/local/bin/refit ${hint}`,
    );
    expect(masked).toBe(`${inTheWay}${file}, /usr/local/bin/refit ${hint}`);
    expect(kept).toBe(
      `REFIT_INSTALL: refit install did not make ${file} (stop and remove ${service} yourself, then run this again)\nexit code 1\n`,
    );
    for (const path of ['/usr/local/bin/refit', '/etc/refit/agent.kubeconfig'])
      expect(left).toContain(`left ${path}: refit install did not put it there\n`);
    expect(changed).toEqual([]);
  });

  test('where another agent runs none is installed, and state that it uses, or that says how to put files of the host back, is not removed', () => {
    const { used, changing } = seen.foreign;
    const hint = 'end that agent and the service that starts it, then run this again';
    const fault = `REFIT_INSTALL: another agent (PID PID) uses /var/lib/refit-of-this-host (${hint})\nexit code 1\n`;
    // `install` fails as well while another agent uses the state directory, because the service of the agent would
    // restart for ever.
    expect(used).toBe(fault.repeat(2));
    expect(changing).toBe(
      'REFIT_INSTALL: the agent is changing files of this host: wait until that has ended (correct what the message names, then install again)\nexit code 1\n',
    );
  });

  test('what nobody can read or remove is no bug of Refit, and uninstall goes on once it is gone', () => {
    const { directory, stuck, freed } = seen.foreign;
    const file =
      name === 'systemd' ? '/etc/systemd/system/refit-agent.service' : '/etc/init.d/refit-agent';
    const fault = (what: string): string =>
      `REFIT_INSTALL: this host refuses: ${what} '${file}' (fix that on this host, and run the same command again)\nexit code 1\n`;
    expect(directory).toBe(fault('EISDIR: illegal operation on a directory, read').repeat(2));
    expect(stuck).toBe(fault('EBUSY: resource busy or locked, unlink'));
    expect(freed).toContain(`removed ${service}\n`);
    expect(freed).not.toContain('exit code');
  });

  test('a full disk is no bug of Refit, and nothing half-written stays', () => {
    const { full, afterFull } = seen.foreign;
    expect(full).toContain('\nREFIT_INSTALL: cannot write /usr/local/bin/refit: ENOSPC: ');
    expect(full).toContain(
      ' (fix that on this host, and run the same command again)\nexit code 1\n',
    );
    expect(afterFull).toEqual([]);
  });

  test('an option of agent.yaml for kubeadm hosts only is read there as the agent reads it', () => {
    const { kubeadm } = seen.foreign;
    expect(kubeadm).toContain(
      `started ${service}, now and at each boot; its state is in /var/lib/refit-of-this-host`,
    );
    expect(kubeadm).toContain(`removed ${service}\n`);
    expect(kubeadm).not.toContain('could not read');
    expect(kubeadm).not.toContain('exit code');
  });

  test('install says what it found and did', () => {
    const lines = seen.installed.trim().split('\n');
    expect(lines[0]).toMatch(
      /^found k0s v1\.36\.3\+k0s\.0, a worker \(PID \d+, data in \/var\/lib\/k0s\)$/,
    );
    expect(lines.slice(1)).toEqual([
      'copied this program to /usr/local/bin/refit',
      expect.stringMatching(/^wrote \/etc\/.*refit-agent/),
      `started ${service}, now and at each boot; its state is in /var/lib/refit-of-this-host`,
    ]);
  });

  test('its agent upgrades k0s by a restart at once, not after the delay of the service manager', () => {
    expect(seen.good[0]).toBe('Completed');
    expect(seen.versions.slice(0, 2)).toEqual(['v1.36.3+k0s.0', 'v1.36.3+k0s.2']);
    expect(seen.upgradeMs, seen.good[1]).toBeLessThan(seen.respawnMs / 2);
  });

  test('it puts the old version back when the new one ends at once', () => {
    expect(seen.bad[0], seen.bad[1]).toBe('Failed');
    expect(seen.versions[2]).toBe('v1.36.3+k0s.2');
  });

  test('a second install starts the agent anew', () => {
    expect(seen.again).toContain(`started ${service}`);
  });

  test('uninstall leaves k0s, and nothing of its own', () => {
    expect(seen.wasThere).toHaveLength(3);
    expect(seen.left).toEqual([]);
    expect(seen.versions[3]).toBe('v1.36.3+k0s.2');
    expect(seen.removed).toContain(`removed ${service}`);
    expect(seen.removed).toContain('left /etc/refit: it has other files');
    expect(seen.config).toContain('binary: /usr/local/bin/k0s');
  });

  test('install says that k0s runs its own agent on a worker, and the next step', () => {
    expect(seen.besideOwn).toContain(
      "k0s runs its own agent on this host: Refit's agent only watches\nnext: run the controllers",
    );
  });

  if (whyNoPod !== undefined) leftOut('the DaemonSet', whyNoPod);
  else
    describe('pods of the DaemonSet, from the image of Refit alone', () => {
      test('a DaemonSet pod upgrades k0s on a host where the agent is not a service', () => {
        expect(seen.byPod?.end[0], `${seen.byPod?.end[1]}\n${seen.byPod?.output}`).toBe(
          'Completed',
        );
        expect(seen.versions[4]).toBe('v1.36.5+k0s.0');
      });

      test('a DaemonSet pod that ends during an upgrade leaves no agent, and the next pod resumes the upgrade', () => {
        expect(seen.byPod?.endedAt).toContain('Restart');
        expect(seen.byPod?.left).toEqual([]);
        expect(seen.byPod?.output).toContain('resuming');
      });

      test('replace the program of another version once', () => {
        const { isReplaced, mode, inodes } = seen.byPod ?? {};
        expect({ isReplaced, mode }).toEqual({ isReplaced: true, mode: 0o755 });
        expect(inodes).toHaveLength(1);
      });
    });
}
