/**
 * Checks, before anything is built, that this machine has the necessary commands and enough disk space. If not, one
 * sentence says what is missing.
 */
import { existsSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { RefitError } from '../../../src/util/errors.ts';
import { run } from '../../../tools/controlplane/run.ts';

/** The necessary commands, and the Debian packages that contain them. */
const TOOLS = {
  unshare: 'util-linux',
  nsenter: 'util-linux',
  ip: 'iproute2',
  tar: 'tar',
  'ssh-keygen': 'openssh-client',
  'ssh-keyscan': 'openssh-client',
  'dpkg-deb': 'dpkg',
  'apt-get': 'apt',
  curl: 'curl',
  pgrep: 'procps',
  script: 'bsdutils',
} as const;

/** The disk space that is needed, because each machine has its own copy of every image. */
const NEEDED_GIB = 20;

export async function demandHost(): Promise<void> {
  if (process.getuid?.() !== 0)
    throw new RefitError(
      'REFIT_TESTENV',
      'only root can make machines of namespaces: run this as root',
    );
  const missing: string[] = existsSync('/usr/sbin/sshd') ? [] : ['/usr/sbin/sshd (openssh-server)'];
  for (const [tool, from] of Object.entries(TOOLS))
    if (!(await run('sh', ['-c', `command -v ${tool}`])).ok) missing.push(`${tool} (${from})`);
  if (missing.length > 0)
    throw new RefitError(
      'REFIT_TESTENV',
      `missing: ${missing.join(', ')}: install Debian's packages in brackets`,
    );
  if (!(await run('unshare', ['--mount', '--net', '--pid', '--cgroup', '--fork', 'true'])).ok)
    throw new RefitError(
      'REFIT_TESTENV',
      'this kernel or container allows no namespaces: run this where root may call unshare',
    );
  const { bavail, bsize } = statfsSync(tmpdir());
  const free = Math.floor((bavail * bsize) / 2 ** 30);
  if (free < NEEDED_GIB)
    throw new RefitError(
      'REFIT_TESTENV',
      `${tmpdir()} has ${free} GiB free, ${NEEDED_GIB} are needed: set TMPDIR to a folder with more room`,
    );
}
