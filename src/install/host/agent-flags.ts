/** For an agent, which runs on every node for months and computes little: few threads, no signal that opens a debugger. */
export const AGENT_FLAGS = [
  '--jitless',
  '--lite-mode',
  '--no-node-snapshot',
  '--v8-pool-size=0',
  '--expose-gc',
  '--disable-sigusr1',
  '--use-openssl-ca',
  '--no-harmony-temporal',
] as const;
