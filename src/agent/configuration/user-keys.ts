/** Reads and replaces the keys that may log in as a user. As that user: a link in the home must not lead root elsewhere. */
import { readFile } from 'node:fs/promises';
import { runProgram } from '../../kubeadm/run-program.ts';
import type { FileState } from './root-file.ts';

const FILE = '.ssh/authorized_keys';
const READ = `[ -e ${FILE} ] || exit 3; [ -f ${FILE} ] && cat ${FILE}`;
const WRITE = `umask 077; mkdir -p .ssh && cat >${FILE}.refit && sync ${FILE}.refit && mv -f ${FILE}.refit ${FILE} && sync .ssh`;
const PATIENCE_MS = 10_000;

/** Undefined where there is no such file. Its mode is as sshd wants it. */
export async function readKeys(root: string, user: string, { mode, gid }: Omit<FileState, 'content'>) {
  const keys = await runAs(root, user, READ);
  return keys === undefined ? undefined : { content: Buffer.from(keys).toString('base64'), mode, gid };
}

export async function writeKeys(root: string, user: string, state: FileState | undefined): Promise<void> {
  if (state) await runAs(root, user, WRITE, Buffer.from(state.content, 'base64').toString('utf8'));
  else await runAs(root, user, `rm -f ${FILE} ${FILE}.refit`);
}

async function runAs(root: string, user: string, script: string, input = ''): Promise<string | undefined> {
  const lines = (await readFile(`${root}/etc/passwd`, 'utf8')).split('\n').map((line) => line.split(':'));
  const [, , uid, gid, , home] = lines.find(([name]) => name === user) ?? [];
  if (!uid || !gid || !home) throw new Error(`/etc/passwd of this host has no user ${user}`);
  const as = { uid: Number(uid), gid: Number(gid), env: { HOME: root + home, PATH: '/usr/sbin:/usr/bin:/sbin:/bin' } };
  const options = { input, patienceMs: PATIENCE_MS, as };
  const { code, stdout, stderr } = await runProgram('/bin/sh', ['-c', `cd "$HOME" || exit 1; ${script}`], options);
  if (code === 0) return stdout;
  if (code === 3) return undefined;
  const why = stderr.trim().split('\n').at(-1)?.slice(0, 200);
  throw new Error(`cannot use ${FILE} of user ${user}: ${why || 'it is no plain file'}`);
}
