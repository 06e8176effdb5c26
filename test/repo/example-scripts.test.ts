/**
 * Tests the scripts in the examples for system-upgrade-controller. Runs them as a node would, with stand-ins for the
 * programs of the system.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { CattlePlan } from '../../src/api/cattle/plan.ts';
import { ROOT } from './tree.ts';

const PROGRAMS = ['apt-get', 'systemctl', 'sleep', 'sysctl', 'update-ca-certificates'];

class Machine {
  readonly root: string;

  constructor() {
    this.root = mkdtempSync(join(tmpdir(), 'refit-example-'));
    onTestFinished(() => rmSync(this.root, { recursive: true }));
    for (const folder of ['programs', 'run', 'etc/sysctl.d', 'usr/local/share/ca-certificates'])
      mkdirSync(join(this.root, folder), { recursive: true });
    for (const name of PROGRAMS) {
      const script = `#!/bin/sh\necho "${name} $*" >> ${this.root}/calls\n`;
      writeFileSync(join(this.root, 'programs', name), script, { mode: 0o755 });
    }
  }

  /** Runs the script of the Plan in that example; its folders are below the root of this machine. Returns the exit code. */
  run(example: string): number | null {
    const text = readFileSync(`${ROOT}examples/system-upgrade-controller/${example}.yaml`, 'utf8');
    const objects = parseAllDocuments(text).map((document) => document.toJS() as CattlePlan);
    const upgrade = objects.find(({ kind }) => kind === 'Plan')?.spec?.upgrade;
    expect(upgrade?.command).toEqual(['chroot', '/host', 'sh', '-euc']);
    const [script = ''] = upgrade?.args ?? [];
    const moved = script.replaceAll(/(?<=[ =])\/(?=etc|run|usr)/g, `${this.root}/`);
    expect(moved).not.toBe(script);
    const path = `${join(this.root, 'programs')}:${process.env['PATH']}`;
    return spawnSync('sh', ['-euc', moved], { env: { PATH: path } }).status;
  }

  /** Returns the calls of the fake programs since the last call of this function. */
  calls(): string[] {
    const file = join(this.root, 'calls');
    if (!existsSync(file)) return [];
    const lines = readFileSync(file, 'utf8').trim().replaceAll(`${this.root}/`, '/').split('\n');
    rmSync(file);
    return lines;
  }

  read(path: string): string {
    return readFileSync(join(this.root, path), 'utf8');
  }

  write(path: string, text: string): void {
    writeFileSync(join(this.root, path), text);
  }
}

test('os-update: a restart is not taken for a success, and after it the script ends well', () => {
  const machine = new Machine();
  machine.write('run/reboot-required', '');
  expect(machine.run('os-update')).toBe(1);
  const updates = ['apt-get update', expect.stringContaining('dist-upgrade') as string];
  expect(machine.calls()).toEqual([...updates, 'systemctl reboot', 'sleep 600']);
  rmSync(join(machine.root, 'run/reboot-required'));
  expect(machine.run('os-update')).toBe(0);
  expect(machine.calls()).toEqual(updates);
});

test('os-update: packages that cannot be installed fail the Job, without a restart', () => {
  const machine = new Machine();
  machine.write('run/reboot-required', '');
  machine.write('programs/apt-get', '#!/bin/sh\nexit 100\n');
  expect(machine.run('os-update')).toBe(100);
  expect(machine.calls()).toEqual([]);
});

test('kernel-parameter: the parameter is in a file and in force, also after a second run', () => {
  const machine = new Machine();
  for (let run = 0; run < 2; run += 1) {
    expect(machine.run('kernel-parameter')).toBe(0);
    expect(machine.read('etc/sysctl.d/90-inotify.conf')).toBe(
      'fs.inotify.max_user_instances = 1024\n',
    );
    expect(machine.calls()).toEqual(['sysctl --load=/etc/sysctl.d/90-inotify.conf']);
  }
});

test('certificate: the node gets the certificate of the Secret, and later another one', () => {
  const machine = new Machine();
  mkdirSync(join(machine.root, 'run/company-ca'));
  for (const certificate of ['one\n', 'another\n']) {
    machine.write('run/company-ca/company-ca.crt', certificate);
    expect(machine.run('certificate')).toBe(0);
    expect(machine.read('usr/local/share/ca-certificates/company-ca.crt')).toBe(certificate);
    expect(machine.calls().map((call) => call.trim())).toEqual(['update-ca-certificates']);
  }
});
