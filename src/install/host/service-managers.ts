/**
 * Describes how the agent is a service of systemd or OpenRC: its file, and the commands that start,
 * stop and remove it.
 */

import { existsSync } from 'node:fs';
import { failing } from '../../util/errors.ts';
import { quotedWord } from '../../util/shell-word.ts';
import { deployFile } from '../deploy-files.ts';

export const SERVICE = 'refit-agent';
const UNIT = `${SERVICE}.service`;

/**
 * The service managers. `sign` is a path that exists if the manager runs. Each command is a text of words separated by
 * spaces.
 */
const MANAGERS = [
  {
    sign: '/run/systemd/system',
    title: `systemd unit ${UNIT}`,
    file: `/etc/systemd/system/${UNIT}`,
    dropIn: `/etc/systemd/system/${UNIT}.d/`,
    mode: 0o644,
    textFor: systemdUnit,
    /** These commands start the service now and at each boot. If the service runs already, they restart it. */
    start: ['systemctl daemon-reload', `systemctl enable ${UNIT}`, `systemctl restart ${UNIT}`],
    stop: [`systemctl stop ${UNIT}`],
    /** `disable` runs before the file is removed, and `forget` after that. */
    disable: [`systemctl disable ${UNIT}`],
    forget: ['systemctl daemon-reload'],
  },
  {
    sign: '/run/openrc',
    title: `OpenRC service ${SERVICE}`,
    file: `/etc/init.d/${SERVICE}`,
    dropIn: `/etc/conf.d/${SERVICE}`,
    mode: 0o755,
    textFor: openRcScript,
    start: [`rc-update add ${SERVICE} default`, `rc-service ${SERVICE} restart`],
    stop: [`rc-service --ifstarted ${SERVICE} stop`],
    // The service is added first, because `delete` fails for a service that is in no runlevel.
    disable: [`rc-update add ${SERVICE} default`, `rc-update delete ${SERVICE} default`],
    forget: [],
  },
];

/** Returns the manager of the running system. It throws REFIT_INSTALL if there is none. */
export function serviceManager() {
  const message =
    'neither systemd nor OpenRC runs on this host: run `refit agent` under your process supervisor';
  return MANAGERS.find(({ sign }) => existsSync(sign)) ?? failing('REFIT_INSTALL')(message);
}

/** Returns the text of the unit. `command` is the program with its arguments. */
export function systemdUnit(command: readonly string[]): string {
  // systemd expands `%` and `$` in arguments, so both are doubled.
  const words = command.map((word) =>
    JSON.stringify(word).replaceAll('%', '%%').replaceAll('$', '$$$$'),
  );
  const unit = withValue(deployFile('host/refit-agent.service'), 'ExecStart', words.join(' '));
  // A step of kubeadm must continue when the agent ends.
  return command.includes('kubeadm') ? unit.replace('UMask=', 'KillMode=process\nUMask=') : unit;
}

/** Returns the text of the init script. The argument is the program with its arguments. */
export function openRcScript([program = '', ...args]: readonly string[]): string {
  const script = withValue(deployFile('host/refit-agent.initd'), 'command', quotedWord(program));
  return withValue(script, 'command_args', quotedWord(args.map(quotedWord).join(' ')));
}

function withValue(text: string, name: string, value: string): string {
  return text.replace(new RegExp(`^${name}=.*$`, 'm'), () => `${name}=${value}`);
}
