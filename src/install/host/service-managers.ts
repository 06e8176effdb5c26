/** Starts, stops and removes the agent as a service of systemd or OpenRC. */
import { existsSync } from 'node:fs';
import { chmod, rm } from 'node:fs/promises';
import type { Commands } from '../../agent/service/commands.ts';
import { writeDurably } from '../../agent/state/durable-files.ts';
import { RefitError } from '../../util/errors.ts';
import { deployFile } from '../deploy-files.ts';

export interface AgentService {
  readonly title: string;
  /** Path of the file that it is run by. */
  readonly file: string;
  /** Writes the file, and starts the service now and at each boot; one that runs starts anew. */
  start(command: readonly string[]): Promise<void>;
  stop(): Promise<void>;
  /** Starts it again after `stop`. */
  resume(): Promise<void>;
  /** Undoes `start`, after `stop`; needs its file. */
  remove(): Promise<void>;
}

/** That of the running system. Throws REFIT_INSTALL when there is none. */
export function agentService(commands: Commands): AgentService {
  if (existsSync('/run/systemd/system')) return underSystemd(commands);
  if (existsSync('/run/openrc')) return underOpenRc(commands);
  throw new RefitError(
    'REFIT_INSTALL',
    'neither systemd nor OpenRC runs this host: run `refit agent` under your supervisor',
  );
}

function underSystemd(commands: Commands): AgentService {
  const file = `/etc/systemd/system/${SERVICE}.service`;
  return {
    title: `systemd unit ${SERVICE}.service`,
    file,
    async start(command) {
      await writeDurably(file, systemdUnit(command));
      await chmod(file, 0o644);
      await commands.ask('systemctl', 'daemon-reload');
      await commands.ask('systemctl', 'enable', `${SERVICE}.service`);
      await commands.ask('systemctl', 'restart', `${SERVICE}.service`);
    },
    async stop() {
      if (existsSync(file)) await commands.ask('systemctl', 'stop', `${SERVICE}.service`);
    },
    async resume() {
      if (existsSync(file)) await commands.ask('systemctl', 'start', `${SERVICE}.service`);
    },
    async remove() {
      await commands.ask('systemctl', 'disable', `${SERVICE}.service`);
      await rm(file);
      await commands.ask('systemctl', 'daemon-reload');
    },
  };
}

function underOpenRc(commands: Commands): AgentService {
  const file = `/etc/init.d/${SERVICE}`;
  return {
    title: `OpenRC service ${SERVICE}`,
    file,
    async start(command) {
      await writeDurably(file, openRcScript(command));
      await chmod(file, 0o755);
      await commands.ask('rc-update', 'add', SERVICE, 'default');
      await commands.ask('rc-service', SERVICE, 'restart');
    },
    async stop() {
      if (existsSync(file)) await commands.ask('rc-service', '--ifstarted', SERVICE, 'stop');
    },
    async resume() {
      if (existsSync(file)) await commands.ask('rc-service', SERVICE, 'start');
    },
    async remove() {
      await commands.ask('rc-update', 'delete', SERVICE);
      await rm(file);
    },
  };
}

export const SERVICE = 'refit-agent';

/** `command`: the program and its arguments. */
export function systemdUnit(command: readonly string[]): string {
  // systemd expands both in arguments.
  const words = command.map((word) => JSON.stringify(word).replaceAll('%', '%%').replaceAll('$', '$$$$'));
  const unit = withValue(deployFile('host/refit-agent.service'), 'ExecStart', words.join(' '));
  // A step of kubeadm goes on when the agent ends.
  return command.includes('kubeadm') ? unit.replace('UMask=', 'KillMode=process\nUMask=') : unit;
}

export function openRcScript([program = '', ...args]: readonly string[]): string {
  const script = withValue(deployFile('host/refit-agent.initd'), 'command', shellWord(program));
  return withValue(script, 'command_args', shellWord(args.map(shellWord).join(' ')));
}

function withValue(text: string, name: string, value: string): string {
  return text.replace(new RegExp(`^${name}=.*$`, 'm'), () => `${name}=${value}`);
}

function shellWord(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
