/** Requests the status of etcd's members through their JSON gateway. */

import { readFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import type { Machine } from '../machines/machine.ts';

interface Members {
  readonly members?: readonly { readonly name?: string; readonly isLearner?: boolean }[];
}

interface Status {
  readonly version?: string;
  readonly leader?: string;
  readonly errors?: readonly string[];
}

export const etcdMembers = async (machine: Machine): Promise<Members> =>
  (await ask(machine, '/v3/cluster/member/list')) as Members;

export const etcdStatus = async (machine: Machine): Promise<Status> =>
  (await ask(machine, '/v3/maintenance/status')) as Status;

async function ask(machine: Machine, path: string): Promise<unknown> {
  const pki = join(machine.root, 'etc/kubernetes/pki/etcd');
  const [ca, cert, key] = await Promise.all(
    ['ca.crt', 'healthcheck-client.crt', 'healthcheck-client.key'].map(
      async (name) => await readFile(join(pki, name)),
    ),
  );
  return await new Promise((resolve, reject) => {
    const options = {
      host: machine.address,
      port: 2379,
      path,
      method: 'POST',
      ca,
      cert,
      key,
      timeout: 60_000,
    };
    const call = request(options, (response) => {
      let text = '';
      response.on('data', (chunk) => {
        text += String(chunk);
      });
      response.on('end', () => {
        if (response.statusCode === 200) resolve(JSON.parse(text));
        else reject(new Error(`etcd on ${machine.name} answers ${response.statusCode}: ${text}`));
      });
    });
    call.on('timeout', () => call.destroy(new Error(`etcd on ${machine.name} gives no answer`)));
    call.on('error', reject);
    call.end('{}');
  });
}
