// Replaces the plug-in lookup of pluginlib, which the bench does not use: the program that loads a nodelet calls this function.
// Debian's pluginlib needs a library of ROS 2.
#pragma once

#include <boost/make_shared.hpp>

#define PLUGINLIB_EXPORT_CLASS(type, base) \
  boost::shared_ptr<base> create_plugin() { return boost::make_shared<type>(); }
