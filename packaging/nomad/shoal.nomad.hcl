# Nodes and gateways of a shoal as a Nomad job.  Certificates come from `packaging/make-certs`; copy them to every machine.
#
#   nomad job run -var certs=/etc/shoal/members -var 'nats=["tls://10.0.0.1:4222"]' packaging/nomad/shoal.nomad.hcl
#   nomad job scale shoal node 5

variable "program" {
  type        = string
  default     = "/usr/local/bin/shoal"
  description = "Shoal on the machines of the cluster."
}
variable "certs" {
  type        = string
  description = "Folder with shoal-node-0, shoal-node-1, ... and shoal-gateway, as make-certs writes them."
}
variable "nats" {
  type        = list(string)
  description = "NATS servers of the shoal; gateways find the nodes through them."
}
variable "shoal" {
  type        = string
  default     = "shoal"
  description = "Name of the shoal on its NATS servers."
}
variable "nodes" {
  type    = number
  default = 3
}
variable "gateways" {
  type    = number
  default = 2
}
variable "driver" {
  type        = string
  default     = "exec"
  description = "exec, or raw_exec where the machine has no cgroups to confine a task with."
}
variable "user" {
  type        = string
  default     = "shoal"
  description = "Whom the members run as; the certificates must belong to it."
}
variable "datacenters" {
  type    = list(string)
  default = ["*"]
}
variable "models" {
  type        = string
  default     = ""
  description = "Folder of the models; default: those that come with Shoal."
}

locals {
  # raw_exec gives a task all capabilities of its user and accepts no list of them.
  cap_drop = var.driver == "exec" ? ["all"] : null
  join     = concat(flatten([for url in var.nats : ["--join", url]]), ["--shoal", var.shoal])
}

job "shoal" {
  datacenters = var.datacenters
  type        = "service"

  update {
    max_parallel      = 1
    min_healthy_time  = "2s"
    healthy_deadline  = "2m"
    progress_deadline = "5m"
    auto_revert       = true
  }

  group "node" {
    count = var.nodes
    scaling {
      min     = 1
      max     = 100
      enabled = true
    }
    spread {
      attribute = "${node.unique.id}"
    }
    restart {
      attempts = 10
      interval = "1m"
      delay    = "1s"
      mode     = "delay"
    }
    network {
      port "node" {}
      port "http" {}
    }
    service {
      name     = "shoal-node"
      provider = "nomad"
      port     = "http"
      check {
        type     = "http"
        path     = "/readyz"
        interval = "2s"
        timeout  = "5s"
      }
    }
    task "node" {
      driver       = var.driver
      user         = var.user
      kill_timeout = "60s"
      kill_signal  = "SIGTERM" # drain: streams move to other nodes or finish
      env {
        SHOAL_CACHE_DIR = "${NOMAD_ALLOC_DIR}/data"
        SHOAL_MODELS    = var.models
      }
      config {
        command  = var.program
        cap_drop = local.cap_drop
        args = concat(["node", "--certs", "${var.certs}/shoal-node-${NOMAD_ALLOC_INDEX}",
          "--listen", "${NOMAD_ADDR_node}", "--advertise", "${NOMAD_ADDR_node}",
        "--http", "${NOMAD_ADDR_http}"], local.join)
      }
      resources {
        cpu    = 500
        memory = 512
      }
    }
  }

  group "gateway" {
    count = var.gateways
    scaling {
      min     = 1
      max     = 20
      enabled = true
    }
    restart {
      attempts = 10
      interval = "1m"
      delay    = "1s"
      mode     = "delay"
    }
    network {
      port "http" {}
    }
    service {
      name     = "shoal"
      provider = "nomad"
      port     = "http"
      check {
        type     = "http"
        path     = "/readyz"
        interval = "2s"
        timeout  = "5s"
      }
    }
    shutdown_delay = "5s" # clients stop looking it up, and then it ends
    task "gateway" {
      driver       = var.driver
      user         = var.user
      kill_timeout = "60s"
      config {
        command  = var.program
        cap_drop = local.cap_drop
        args     = concat(["gateway", "--certs", "${var.certs}/shoal-gateway", "--listen", "${NOMAD_ADDR_http}"], local.join)
      }
      resources {
        cpu    = 200
        memory = 128
      }
    }
  }
}
