/**
 * Finds the nginx of Debian, with which the update server is compared. It uses the program in PATH, or else unpacks the
 * package into the cache.
 */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../../tools/controlplane/run.ts';
import { cacheFolder, must } from '../../tools/release/commands.ts';

/** Returns the path of the program. */
async function findNginx(): Promise<string> {
  if ((await run('nginx', ['-v'])).ok) return 'nginx';
  const folder = await cacheFolder('nginx');
  const program = join(folder, 'usr', 'sbin', 'nginx');
  if (!existsSync(program))
    await must(
      'sh',
      ['-ec', 'apt-get download nginx && dpkg-deb -x nginx_*.deb . && rm nginx_*.deb'],
      { cwd: folder },
    );
  return program;
}

/**
 * Returns the command that serves `root` in the foreground. It uses the settings of Debian for files, and writes an
 * access log, as the update server does.
 */
export async function nginxCommand(
  directory: string,
  root: string,
  port: number,
): Promise<readonly [string, string[]]> {
  const program = await findNginx();
  await mkdir(directory, { recursive: true });
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${directory}/${name};`,
  );
  const settings = [
    ...(process.getuid?.() === 0 ? ['user root;'] : []),
    'daemon off; worker_processes auto; pid nginx.pid; error_log stderr;',
    'events { worker_connections 4096; }',
    `http { ${temporary.join(' ')} sendfile on; tcp_nopush on; access_log ${directory}/access.log;`,
    `server { listen 127.0.0.1:${port} backlog=4096; root ${root}; } }`,
  ];
  const file = join(directory, 'nginx.conf');
  await writeFile(file, `${settings.join('\n')}\n`);
  return [program, ['-p', directory, '-e', 'stderr', '-c', file]];
}
