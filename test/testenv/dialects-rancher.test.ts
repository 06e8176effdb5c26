/** The table of scenes with Plans of Rancher, on a real API server. */
import { RANCHER } from '../dialects/clusters/rancher.ts';
import { playTableOnRealServer } from './scenes/play-table.ts';

playTableOnRealServer(RANCHER);
